-- +goose Up
-- Certificates for HTTPS, shared by all servers of an install: any of them answers the challenge of an order.

create table platform.certificates (
    name text constraint certificates_pkey primary key,
    sealed bytea constraint certificates_sealed_not_null not null,
    updated_at timestamptz constraint certificates_updated_at_not_null not null default now()
);
comment on table platform.certificates is 'account key, certificate and pending challenge of an ACME service';
comment on column platform.certificates.sealed is 'PEM, sealed under a key of the install';
