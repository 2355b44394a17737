-- What the shop's program keeps. The column version is the number of the transaction that changed the row last.
CREATE TABLE orders (
    id int PRIMARY KEY,
    customer text NOT NULL,
    amount numeric(12, 2) NOT NULL,
    event_time date NOT NULL,
    version xid8 NOT NULL DEFAULT pg_current_xact_id()
);
CREATE INDEX ON orders (version);
CREATE FUNCTION note_version() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN new.version = pg_current_xact_id(); RETURN new; END $$;
CREATE TRIGGER orders_updated BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION note_version();
INSERT INTO orders (id, customer, amount, event_time) VALUES
    (1, 'Ada', 12.5, '2026-03-01'), (2, 'Bert', 40, '2026-03-01'), (3, 'Cleo', 7.25, '2026-03-02');
-- Who reads them for odf-node, and may do nothing else.
CREATE USER odf PASSWORD 'change me';
GRANT SELECT ON orders TO odf;
