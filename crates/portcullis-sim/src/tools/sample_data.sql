-- The internal database of the simulated company. Every name, address and number is invented;
-- the domains are reserved for examples (RFC 2606).
CREATE TABLE customers (
    id                INTEGER PRIMARY KEY,
    name              TEXT NOT NULL,
    email             TEXT NOT NULL,
    country           TEXT NOT NULL,
    preferred_channel TEXT NOT NULL CHECK (preferred_channel IN ('email', 'secure portal')),
    account_number    TEXT NOT NULL UNIQUE
);
CREATE TABLE transactions (
    id           INTEGER PRIMARY KEY,
    customer_id  INTEGER NOT NULL REFERENCES customers (id),
    booked_on    TEXT NOT NULL,
    amount_cents INTEGER NOT NULL,
    currency     TEXT NOT NULL,
    purpose      TEXT NOT NULL
);
CREATE TABLE access_requests (
    id          INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    received_on TEXT NOT NULL,
    due_on      TEXT NOT NULL,
    status      TEXT NOT NULL CHECK (status IN ('open', 'answered', 'refused'))
);

INSERT INTO customers VALUES
    (1, 'Maria Lindqvist',  'maria.lindqvist@example.com',  'SE', 'secure portal', '4400-1001'),
    (2, 'Tomasz Zielinski', 'tomasz.zielinski@example.com', 'PL', 'email',         '4400-1002'),
    (3, 'Amara Okafor',     'amara.okafor@example.org',     'NG', 'email',         '4400-1003'),
    (4, 'Jonas Reber',      'jonas.reber@example.net',      'CH', 'secure portal', '4400-1004'),
    (5, 'Priya Nair',       'priya.nair@example.com',       'IN', 'secure portal', '4400-1005'),
    (6, 'Eleni Georgiou',   'eleni.georgiou@example.org',   'GR', 'email',         '4400-1006');

INSERT INTO transactions VALUES
    (1,  1, '2026-01-05',    125000, 'EUR', 'monthly deposit'),
    (2,  1, '2026-01-19',     -4990, 'EUR', 'card payment'),
    (3,  2, '2026-01-07',    310050, 'EUR', 'invoice 2026-014'),
    (4,  2, '2026-02-02',    -82000, 'EUR', 'rent'),
    (5,  3, '2026-01-11',     56000, 'USD', 'refund'),
    (6,  3, '2026-02-14',  -1200000, 'USD', 'equipment'),
    (7,  4, '2026-01-30',    780000, 'CHF', 'salary'),
    (8,  4, '2026-02-27',    780000, 'CHF', 'salary'),
    (9,  5, '2026-02-03',     43000, 'EUR', 'monthly deposit'),
    (10, 5, '2026-02-21',    -15075, 'EUR', 'card payment'),
    (11, 6, '2026-01-16',    260000, 'EUR', 'invoice 2026-021'),
    (12, 6, '2026-02-25', -10000000, 'EUR', 'property purchase');

INSERT INTO access_requests VALUES
    (1, 1, '2026-02-20', '2026-03-22', 'open'),
    (2, 3, '2026-01-12', '2026-02-11', 'answered'),
    (3, 6, '2026-02-26', '2026-03-28', 'open'),
    (4, 2, '2025-12-01', '2025-12-31', 'refused');
