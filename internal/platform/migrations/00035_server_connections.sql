-- +goose Up
-- The servers of an install divide the connections of their PostgreSQL. A server takes more only
-- when the others have given it up.

alter table platform.servers add column connections integer;
comment on column platform.servers.connections is 'connections that the server may open, or has open; null: it has not claimed any yet';
