-- +goose Up
-- Former releases stored addresses without normalization, such as with full-width letters. Their rows
-- stay as they are; this finds them by the normalized form.

create index users_email_normalized on auth.users (normalize(email, nfkc)) where not (email is nfkc normalized);
