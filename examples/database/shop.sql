-- What the shop's program keeps. The column version is a number that grows with every change, set by the database itself.
CREATE TABLE changes (last INTEGER NOT NULL);
INSERT INTO changes VALUES (0);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer TEXT NOT NULL,
    amount NUMERIC NOT NULL,
    event_time TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 0
);
CREATE TRIGGER orders_inserted AFTER INSERT ON orders BEGIN
    UPDATE changes SET last = last + 1;
    UPDATE orders SET version = (SELECT last FROM changes) WHERE id = new.id;
END;
CREATE TRIGGER orders_updated AFTER UPDATE OF customer, amount, event_time ON orders BEGIN
    UPDATE changes SET last = last + 1;
    UPDATE orders SET version = (SELECT last FROM changes) WHERE id = new.id;
END;
INSERT INTO orders (id, customer, amount, event_time) VALUES
    (1, 'Ada', 12.5, '2026-03-01'), (2, 'Bert', 40, '2026-03-01'), (3, 'Cleo', 7.25, '2026-03-02');
