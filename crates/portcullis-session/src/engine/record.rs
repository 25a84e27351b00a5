//! What is recorded without being judged: the beginning and the end of a run, what people and servers did.

use portcullis_core::bundle::Bundle;
use portcullis_core::event::{
    Actor, ClosedState, ConfigChange, Control, EventBody, ListedTool, Mode, RunOpened,
};
use portcullis_core::id::Digest;

use super::server::server_name;
use super::{Engine, LAPSES_PER_CLOSE_MAX};
use crate::batch::{Batch, BatchBuilder};
use crate::configuration;
use crate::env::Env;

impl Engine {
    /// The first event of a run.
    pub fn open(&self, env: &mut dyn Env, opened: RunOpened) -> Batch {
        let mut batch = self.builder(env);
        let key = Self::new_key(&mut batch);
        batch.push_with(Actor::gate(), None, EventBody::RunOpened(opened), [Some(key)]);
        batch.finish()
    }

    /// The first events of a further segment.
    pub fn resume(&self, env: &mut dyn Env, parent: ClosedState, mode: Mode) -> Batch {
        let mut batch = self.builder(env);
        let key = self.key.is_none().then(|| Self::new_key(&mut batch));
        batch.push_with(Actor::gate(), None, EventBody::Config(ConfigChange::Resumed { parent }), [key]);
        self.load(&mut batch, self.bundle.digest(), mode);
        batch.finish()
    }

    /// A new bundle reaches the run.
    pub fn reload(&self, env: &mut dyn Env, bundle: &Bundle) -> Batch {
        let mut batch = self.builder(env);
        self.load(&mut batch, bundle.digest(), bundle.mode);
        batch.finish()
    }

    /// A bundle comes into force. What waits for a person lapses if it is another one: it was held by other rules.
    fn load(&self, batch: &mut BatchBuilder<'_>, bundle: Digest, mode: Mode) {
        let policy = self.state.policy().to_owned();
        let configuration = Some(configuration::digest(bundle));
        let change = ConfigChange::BundleLoaded { bundle, configuration, policy, mode };
        batch.push(Actor::gate(), None, EventBody::Config(change));
        if self.state.bundle() != Some(bundle) {
            let pending = self.state.pending_approvals();
            for (approval, about) in pending.into_iter().take(LAPSES_PER_CLOSE_MAX) {
                self.expire(batch, approval, about);
            }
        }
    }

    /// A server listed its tools. `origin` is the command that started it, where the surface knows that.
    pub fn tools_listed(
        &self,
        env: &mut dyn Env,
        server: &str,
        origin: Option<&str>,
        tools: Vec<ListedTool>,
    ) -> Batch {
        let mut batch = self.builder(env);
        let (server, origin) = (server.to_owned(), origin.map(server_name));
        batch.push(
            Actor::gate(),
            None,
            EventBody::Config(ConfigChange::ToolsListed { server, origin, tools }),
        );
        batch.finish()
    }

    /// A person accepted a tool as its server describes it now.
    pub fn tool_accepted(
        &self,
        env: &mut dyn Env,
        server: &str,
        tool: &str,
        digest: Digest,
        approver: &str,
    ) -> Batch {
        let mut batch = self.builder(env);
        let change =
            ConfigChange::ToolAccepted { server: server_name(server), tool: tool.to_owned(), digest };
        batch.push(Actor::approver(approver), None, EventBody::Config(change));
        batch.finish()
    }

    /// Something relevant to the run that the agent neither said, did nor saw, as reported by its surface.
    pub fn evidence(&self, env: &mut dyn Env, name: String, digest: Digest) -> Batch {
        let mut batch = self.builder(env);
        batch.push(Actor::agent(self.principal()), None, EventBody::Evidence { name, digest });
        batch.finish()
    }

    /// A person takes hold of the run.
    pub fn control(
        &self,
        env: &mut dyn Env,
        control: Control,
        approver: &str,
        note: Option<String>,
    ) -> Batch {
        let mut batch = self.builder(env);
        batch.push(Actor::approver(approver), None, EventBody::Control { control, note });
        batch.finish()
    }

    /// The last events of the segment. Requests that wait for an approver lapse.
    pub fn close(&self, env: &mut dyn Env, state: ClosedState) -> Batch {
        let mut batch = self.builder(env);
        for (approval, about) in self.state.pending_approvals().into_iter().take(LAPSES_PER_CLOSE_MAX) {
            self.expire(&mut batch, approval, about);
        }
        let count = batch.seq() + 1;
        batch.push(Actor::gate(), None, EventBody::RunClosed { state, count, successor: None });
        batch.finish()
    }
}
