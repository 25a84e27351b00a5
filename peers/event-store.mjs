// What was said on the streams of a session, so that a client can take one up behind an event.

export function eventStore() {
  const events = [];
  return {
    async storeEvent(stream, message) {
      events.push({ stream, message });
      return `${stream}::${events.length}`;
    },
    async replayEventsAfter(last, { send }) {
      const [stream, number] = last.split('::');
      for (let index = Number(number); index < events.length; index += 1) {
        const { stream: of, message } = events[index];
        if (of === stream && Object.keys(message).length > 0) await send(`${stream}::${index + 1}`, message);
      }
      return stream;
    },
  };
}
