-- +goose Up
-- Webhooks take messages of queues. The column can be null, since functions use the table's row type.
alter table socle.webhooks add column queues text[]; -- names as pgmq has them; null: none
