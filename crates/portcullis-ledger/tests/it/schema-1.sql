PRAGMA application_id = 0x5043554c;
PRAGMA user_version = 1;
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE runs (
    number INTEGER PRIMARY KEY CHECK (number BETWEEN 1 AND 2147483647),
    run BLOB NOT NULL UNIQUE CHECK (length(run) = 16),
    principal TEXT NOT NULL,
    session_key TEXT,
    opened INTEGER NOT NULL
) STRICT;
CREATE INDEX runs_by_session ON runs (session_key, principal) WHERE session_key IS NOT NULL;
CREATE TABLE segments (
    number INTEGER PRIMARY KEY,
    segment BLOB NOT NULL UNIQUE CHECK (length(segment) = 16),
    run INTEGER NOT NULL REFERENCES runs (number),
    writer TEXT NOT NULL,
    ordinal INTEGER NOT NULL,
    after INTEGER NOT NULL,
    parent_segment BLOB,
    parent_link BLOB,
    first_link BLOB NOT NULL CHECK (length(first_link) = 32),
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'abandoned')),
    opened INTEGER NOT NULL,
    UNIQUE (run, ordinal)
) STRICT;
CREATE UNIQUE INDEX one_open_segment_a_run ON segments (run) WHERE state = 'open';
CREATE INDEX open_segments_by_writer ON segments (writer) WHERE state = 'open';
CREATE TABLE events (
    key INTEGER PRIMARY KEY,
    segment INTEGER NOT NULL REFERENCES segments (number),
    kind TEXT NOT NULL,
    action BLOB,
    t INTEGER NOT NULL,
    link BLOB NOT NULL CHECK (length(link) = 32),
    line BLOB NOT NULL
) STRICT;
CREATE TABLE payloads (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs (number),
    commitment BLOB NOT NULL CHECK (length(commitment) = 32),
    salt BLOB NOT NULL CHECK (length(salt) = 32),
    media_type TEXT NOT NULL,
    bytes BLOB NOT NULL,
    UNIQUE (run, commitment)
) STRICT;
CREATE TABLE approvals (
    approval BLOB PRIMARY KEY CHECK (length(approval) = 16),
    run INTEGER NOT NULL REFERENCES runs (number),
    action BLOB NOT NULL,
    digest BLOB NOT NULL,
    principal TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'granted', 'refused', 'expired', 'claimed')),
    scope TEXT,
    requested INTEGER NOT NULL,
    decided INTEGER,
    decided_by TEXT,
    detail TEXT NOT NULL
) STRICT;
CREATE INDEX approvals_by_state ON approvals (state, requested);
CREATE INDEX approvals_by_run ON approvals (run);
