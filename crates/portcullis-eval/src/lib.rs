//! Evaluation on public data sets: adapters, metrics, reports.
//!
//! A suite reads the records of one data set, lets the real pipeline judge what an agent did there, and compares
//! with the labels. What all suites share stands here:
//!
//! | module | has |
//! |---|---|
//! | [`data`] | a file or folder of records, in a fixed order, gzip or not |
//! | [`stream`] | the same one record at a time |
//! | [`suite`] | what a suite is given and what it leaves |
//! | [`metrics`] | the field's figures: LPA, LPP, LPR, EA, FRA |
//! | [`interval`] | how sure a proportion is |
//! | [`report`] | figures beside the published ones, for people and for programs |
//! | [`predictions`] | one line a record, so that anyone can score what was decided |
//!
//! Recorded runs of agents are replayed by [`trajectory`], judged by [`agent_bundle`] unless told otherwise.
//!
//! Many kinds of agents, attacks and texts side by side are [`worlds`]; every suite whose data is there runs in [`all`].
//!
//! Other suites: [`eicu_ac`], judged by [`health_records`] unless told otherwise; [`mind2web_sc`], by [`web_rules`].
//! Both tell what of a decision goes into effects and access policies, also among [`unrelated`] ones.
//!
//! Replies and what was demanded of them: [`ifeval`], [`policy_guard`]. What replies say to be done: [`claims`].
//!
//! Programs that a model writes for every record, and what they are compared with: [`guardagent`].
//!
//! Rehearsed conversations are [`scenarios`]; [`ablation`] leaves parts of the protection out there, [`chaos`] breaks them.
//!
//! No suite holds data: each is given a path. Labels are read for scoring only; nothing of them reaches the
//! pipeline.

pub mod ablation;
pub mod agent_bundle;
pub mod all;
pub mod chaos;
pub mod claims;
pub mod data;
pub mod eicu_ac;
pub mod guardagent;
pub mod health_records;
pub mod ifeval;
pub mod interval;
mod judge;
pub mod metrics;
pub mod mind2web_sc;
pub mod policy_guard;
pub mod predictions;
pub mod report;
pub mod scenarios;
pub mod stream;
pub mod suite;
pub mod text;
pub mod trajectory;
pub mod unrelated;
pub mod web_rules;
pub mod worlds;
