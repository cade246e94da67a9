-- +goose Up
-- The numbers are random, so bit_xor tells one set of rows from another as sum does, at half the cost; and each request asks for it.
comment on table socle.catalogue_version is 'bit_xor(n) is the version of the schema; a server that reads the catalogue folds the rows into one';
