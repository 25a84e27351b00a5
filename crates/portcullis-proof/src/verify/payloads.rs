//! The payloads of a run, given or erased, in the order of their commitments.

use super::ahead::ReadPayload;
use super::{Expect, Stop, Verifier};
use crate::chain::{Digest, Hex};
use crate::diagnose::Place;
use crate::export::ErasedRecord;
use crate::hash::Sha256;
use crate::report::Attack;

/// A payload as events name it, of constant size.
pub(super) struct Named {
    /// The event that names it first.
    pub(super) seq: u64,
    /// Length and media type.
    pub(super) described: Digest,
}

/// Length and media type of a payload, in a fixed size.
pub(super) fn described(bytes: u64, media_type: &str) -> Digest {
    let mut hash = Sha256::new();
    hash.update(bytes.to_be_bytes());
    hash.update(media_type);
    Hex(hash.finish())
}

impl Verifier<'_> {
    pub(super) fn payload(&mut self, place: Place, read: ReadPayload<'_>) -> Result<(), Stop> {
        let (record, bytes, commitment) = match read {
            Ok(read) => read,
            Err(message) => return place.fail(Attack::LineMalformed, None, message),
        };
        let seq = self.named.get(&record.commitment).map(|named| named.seq);
        if commitment != record.commitment {
            let message = format!("salt, media type or bytes do not open commitment `{}`", record.commitment);
            return place.fail(Attack::PayloadAltered, seq, message);
        }
        let Some(named) = self.named.get(&record.commitment) else {
            let message = format!("no event of the run names commitment `{}`", record.commitment);
            return place.fail(Attack::PayloadUnknown, None, message);
        };
        if named.described != described(bytes, &record.media_type) {
            let seq = named.seq;
            let message =
                format!("event {seq} states a different length or media type than this payload has");
            return place.fail(Attack::PayloadAltered, Some(seq), message);
        }
        self.in_order(place, record.commitment, seq)?;
        self.payloads += 1;
        Ok(())
    }

    pub(super) fn erased(&mut self, place: Place, record: ErasedRecord) -> Result<(), Stop> {
        let ErasedRecord { commitment } = record;
        let Some(seq) = self.named.get(&commitment).map(|named| named.seq) else {
            let message = format!("no event of the run names commitment `{commitment}`");
            return place.fail(Attack::PayloadUnknown, None, message);
        };
        self.in_order(place, commitment, Some(seq))?;
        self.erased = self.erased.map(|erased| erased + 1);
        Ok(())
    }

    /// Payloads given and erased are in one order, so that none is given twice, or given and erased.
    fn in_order(&mut self, place: Place, commitment: Digest, seq: Option<u64>) -> Result<(), Stop> {
        if self.last_payload.is_some_and(|last| last >= commitment) {
            return place.fail(
                Attack::RecordOutOfOrder,
                seq,
                "payloads are not in ascending order of commitment",
            );
        }
        self.last_payload = Some(commitment);
        self.expect = Expect::PayloadOrEnd;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most of them are a million; a media type may have a million bytes, too.
    #[test]
    fn what_is_kept_of_a_payload_has_one_size() {
        assert!(size_of::<(Digest, Named)>() <= 72);
        assert_eq!(described(1, "text/plain"), described(1, "text/plain"));
        assert_ne!(described(1, "text/plain"), described(2, "text/plain"));
        assert_ne!(described(1, "text/plain"), described(1, "text/html"));
    }
}
