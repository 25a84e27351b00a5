//! Every limit of the core in one place. Reaching one is a clear error or a denial, never a silent loss.

/// Longest tool, policy, principal or plan name, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Largest set of arguments of one action, as JSON, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 4 << 20;
/// Deepest nesting of arguments, schemas and bundle values.
pub const JSON_DEPTH_MAX: usize = 64;
/// Longest planned-action text that is judged, in bytes.
pub const PLANNED_BYTES_MAX: usize = 1 << 20;
/// Largest event line, in bytes. The same bound is in the offline verifier.
pub const EVENT_BYTES_MAX: usize = 1 << 20;
/// Findings kept in one decision; the headline and the verdict never depend on those that are dropped.
pub const FINDINGS_MAX: usize = 256;
/// Longest message of a finding, in bytes.
pub const MESSAGE_BYTES_MAX: usize = 2_048;
/// Resources that one finding names.
pub const FINDING_RESOURCES_MAX: usize = 256;
/// Access policies that one finding names.
pub const FINDING_POLICIES_MAX: usize = 64;
/// Labels a run may carry before further ones collapse into `unknown`.
pub const LABELS_MAX: usize = 256;
/// Runs above a run that was opened by another.
pub const DEPTH_MAX: u32 = 8;
/// Runs that one run has open at the same time.
pub const CHILDREN_OPEN_MAX: usize = 64;
/// Runs that one run opens in all.
pub const CHILDREN_MAX: usize = 1_024;
/// Actions of one run that may be executing at the same time.
pub const OPEN_ACTIONS_MAX: usize = 1_024;
/// Contained actions of one run of which can be reported what was seen: as many as may be open.
pub const CONTAINED_ACTIONS_MAX: usize = OPEN_ACTIONS_MAX;
/// Servers of one run that were started contained.
pub const CONTAINED_SERVERS_MAX: usize = 256;
/// Connections of one contained action or server that are recorded as they happen. The same bound is in the offline
/// verifier.
pub const CONTAINED_CONNECTIONS_MAX: u32 = 4_096;
/// Tools for which is counted how much more they did than was predicted; what further ones did counts against all.
pub const TOOLS_COUNTED_MAX: usize = 256;
/// Approvals of one run that are remembered, decided ones included.
pub const APPROVALS_MAX: usize = 1_024;
/// Calls of one run that wait for a person at once; further ones are denied.
pub const APPROVALS_PENDING_MAX: usize = 100;
/// Refused calls that a run remembers; what a person refused is never asked again before so many others were.
pub const REFUSALS_REMEMBERED_MAX: usize = 16_384;
/// Refusals of a run that later calls in other words are compared with: the latest ones.
pub const REFUSALS_COMPARED_MAX: usize = 256;
/// Resources of a held call that are kept for such comparisons. A call that is held for more is known again by its
/// arguments only.
pub const REFUSED_RESOURCES_MAX: usize = 64;
/// Longest note of an approver, in bytes.
pub const NOTE_BYTES_MAX: usize = 16 << 10;
/// Characters of an approver's note that the agent receives.
pub const NOTE_TOLD_CHARS_MAX: usize = 500;
/// Grants for effects that are tried on an action that would be held: the latest.
pub const EFFECT_GRANTS_TRIED_MAX: usize = 16;
/// Resources in one grant for effects.
pub const GRANTED_RESOURCES_MAX: usize = 256;
/// Denied actions of one run whose retries are counted.
pub const DENIALS_REMEMBERED_MAX: usize = 1_024;
/// Latest calls of a run that a further one is compared with.
pub const CALLS_COMPARED_MAX: usize = 32;
/// Latest verdicts on calls of a run among which denials are counted.
pub const VERDICTS_REMEMBERED_MAX: u32 = 20;
/// Files in one bundle.
pub const BUNDLE_FILES_MAX: usize = 1_024;
/// Size of one file of a bundle, in bytes.
pub const BUNDLE_FILE_BYTES_MAX: usize = 4 << 20;
/// Tools in one registry.
pub const TOOLS_MAX: usize = 4_096;
/// Runtime policies in one bundle.
pub const POLICIES_MAX: usize = 1_024;
/// Restricted keywords over all policies of one bundle.
pub const KEYWORDS_MAX: usize = 65_536;
/// Steps of one plan template.
pub const PLAN_STEPS_MAX: usize = 1_000;
/// Effects read from one action.
pub const EFFECTS_MAX: usize = 1_024;
/// Tables of one bundle.
pub const TABLES_MAX: usize = 4_096;
/// Columns of one table.
pub const COLUMNS_MAX: usize = 4_096;
/// Activities of one bundle.
pub const ACTIVITIES_MAX: usize = 1_024;
/// Functions of one bundle that agent code may call.
pub const FUNCTIONS_MAX: usize = 1_024;
/// Files of access policies, all together, in bytes.
pub const ACCESS_BYTES_MAX: usize = 4 << 20;
/// Principals whose usage is counted at once. One more is answered with a failure, which denies.
pub const PRINCIPALS_COUNTED_MAX: usize = 100_000;
/// Stored events that are read to find out what a principal has used up so far; more are answered with a failure.
pub const EVENTS_COUNTED_MAX: usize = 500_000;
/// Concepts of the monitors, with those they set themselves; patterns over results come on top of them, at most
/// [`RESULT_PATTERNS_MAX`]. Together they are the bits of one number.
pub const CONCEPTS_MAX: usize = 112;
/// Patterns of the monitors over results.
pub const RESULT_PATTERNS_MAX: usize = 16;
/// Words and phrases of one concept.
pub const CONCEPT_WORDS_MAX: usize = 1_024;
/// Patterns of the monitors.
pub const PATTERNS_MAX: usize = 512;
/// High-risk instructions of one bundle.
pub const HIGH_RISK_MAX: usize = 256;
/// Entries of one list of `[authority]`.
pub const AUTHORITY_ENTRIES_MAX: usize = 512;
/// Contracts of one bundle.
pub const CONTRACTS_MAX: usize = 256;
/// Longest statement of a contract, in bytes.
pub const CONTRACT_STATEMENT_BYTES_MAX: usize = 16 << 10;
/// Longest name of a contract, in bytes.
pub const CONTRACT_NAME_BYTES_MAX: usize = 64;
/// Surfaces or tools that one contract names.
pub const CONTRACT_SCOPE_MAX: usize = 64;
/// Marks that one bundle names.
pub const MARK_RULES_MAX: usize = 1_024;
/// Rules about what happened before, of one bundle.
pub const SEQUENCES_MAX: usize = 16_384;
/// Patterns of tools that one mark or rule names.
pub const SEQUENCE_TOOLS_MAX: usize = 64;
/// Conditions on arguments of one mark or rule about what happened before.
pub const SEQUENCE_CONDITIONS_MAX: usize = 16;
/// Values that one of these names.
pub const SEQUENCE_VALUES_MAX: usize = 64;
/// Keys of marks that a run tells apart, of all marks together.
pub const MARK_KEYS_MAX: usize = 4_096;
/// Keys of marks that all runs of a principal together tell apart.
pub const PRINCIPAL_MARK_KEYS_MAX: usize = 65_536;
/// How far back sequences over a principal may look, in microseconds: seven days.
pub const PRINCIPAL_WINDOW_MAX_MICROS: u64 = 7 * 86_400 * 1_000_000;
/// Places that are remembered of one mark and key, to the exact time and step.
pub const MARK_PLACES_MAX: usize = 256;
