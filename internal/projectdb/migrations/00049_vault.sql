-- +goose Up
-- Secrets that SQL reads, in the form that Supabase's users know: vault.secrets, vault.decrypted_secrets and two functions. A
-- project that has a schema vault of its own keeps it. See docs/decisions/vault.md.

create table socle.vault_keys (
	only_one boolean primary key default true,
	id uuid not null,
	sealed bytea not null,
	constraint vault_keys_only_one check (only_one)
);
comment on table socle.vault_keys is 'the key of vault.secrets, which the server has sealed for this project';

create table socle.opened_vault_keys (
	id uuid primary key,
	key bytea not null,
	constraint opened_vault_keys_key check (octet_length(key) = 64)
);
comment on table socle.opened_vault_keys is 'the same key in the clear, for SQL; no dump has its rows';
alter table socle.vault_keys disable row level security;
alter table socle.opened_vault_keys disable row level security;

-- +goose StatementBegin
do $migration$
begin
	if to_regnamespace('vault') is not null then
		return;
	end if;

	create schema vault;
	create table vault.secrets (
		id uuid primary key default gen_random_uuid(),
		name text unique,
		description text not null default '',
		secret text not null,
		key_id uuid,
		nonce bytea,
		created_at timestamptz not null default now(),
		updated_at timestamptz not null default now()
	);
	comment on column vault.secrets.secret is 'encrypted, see vault.encrypt';
	alter table vault.secrets disable row level security;

	-- a and b have the same length.
	create function vault.xor(a bytea, b bytea) returns bytea language sql immutable parallel safe
		return substr(varbit_send(('x' || encode(a, 'hex'))::varbit # ('x' || encode(b, 'hex'))::varbit), 5);

	-- HMAC-SHA-512 under a key of 32 bytes.
	create function vault.hmac(key bytea, message bytea) returns bytea language sql immutable parallel safe
		return sha512(vault.xor(key || decode(repeat('00', 96), 'hex'), decode(repeat('5c', 128), 'hex'))
			|| sha512(vault.xor(key || decode(repeat('00', 96), 'hex'), decode(repeat('36', 128), 'hex')) || message));

	-- Encrypts and decrypts: HMAC-SHA-512 in counter mode. No two texts may have the same key and start.
	create function vault.apply_keystream(key bytea, start bytea, content bytea) returns bytea
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	declare
		inner_pad constant bytea := vault.xor(key || decode(repeat('00', 96), 'hex'), decode(repeat('36', 128), 'hex'));
		outer_pad constant bytea := vault.xor(key || decode(repeat('00', 96), 'hex'), decode(repeat('5c', 128), 'hex'));
		stream bytea;
	begin
		select coalesce(string_agg(sha512(outer_pad || sha512(inner_pad || start || int4send(i))), ''::bytea order by i), ''::bytea)
		into stream from generate_series(1, (octet_length(content) + 63) / 64) i;
		return vault.xor(content, substr(stream, 1, octet_length(content)));
	end $$;

	-- A key has 32 bytes for encryption and 32 for authentication. The ciphertext ends in 32 bytes that authenticate it with its
	-- nonce and its row.
	create function vault.encrypt(id uuid, plain text, out secret text, out nonce bytea, out key_id uuid)
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		key bytea;
		head bytea;
		content bytea;
	begin
		select o.id, o.key into key_id, key from socle.vault_keys k join socle.opened_vault_keys o on o.id = k.id;
		if not found then
			raise object_not_in_prerequisite_state using message = 'vault: the project has no key yet';
		end if;
		nonce := uuid_send(gen_random_uuid());
		head := uuid_send(id) || nonce;
		content := vault.apply_keystream(substr(key, 1, 32), head, convert_to(plain, 'UTF8'));
		secret := translate(encode(content || substr(vault.hmac(substr(key, 33), head || content), 1, 32), 'base64'), E'\n', '');
	end $$;

	create function vault.decrypt(id uuid, name text, secret text, nonce bytea, key_id uuid) returns text
	language plpgsql stable security definer cost 1000 set search_path = pg_catalog, pg_temp as $$
	declare
		label constant text := left(coalesce(name, id::text), 255);
		key constant bytea := (select o.key from socle.opened_vault_keys o where o.id = key_id);
		head constant bytea := uuid_send(id) || nonce;
		sealed bytea;
		content bytea;
	begin
		if key is null then
			raise object_not_in_prerequisite_state using
				message = format('vault: the secret %s is encrypted with a key that this project does not have', label),
				hint = 'Set it again by vault.update_secret, or delete it.';
		end if;
		if octet_length(nonce) = 16 and length(secret) % 4 = 0 and secret collate "C" ~ '^[A-Za-z0-9+/]*={0,2}$' then
			sealed := decode(secret, 'base64');
			content := substr(sealed, 1, greatest(octet_length(sealed) - 32, 0));
		end if;
		if octet_length(sealed) >= 32
			and substr(sealed, octet_length(content) + 1) = substr(vault.hmac(substr(key, 33), head || content), 1, 32) then
			return convert_from(vault.apply_keystream(substr(key, 1, 32), head, content), 'UTF8');
		end if;
		raise data_exception using
			message = format('vault: the secret %s was changed or moved from another row: it cannot be decrypted', label),
			hint = 'Set it again by vault.update_secret, or delete it.';
	end $$;

	create view vault.decrypted_secrets as
	select id, name, description, secret, vault.decrypt(id, name, secret, nonce, key_id) as decrypted_secret, key_id, nonce,
		created_at, updated_at
	from vault.secrets;

	create function vault.check_secret(plain text, name text, description text) returns void
	language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
	begin
		if octet_length(plain) > 65536 then
			raise invalid_parameter_value using message = 'vault: a secret has at most 65536 bytes';
		elsif length(name) > 255 then
			raise invalid_parameter_value using message = 'vault: a name has at most 255 characters';
		elsif length(description) > 4096 then
			raise invalid_parameter_value using message = 'vault: a description has at most 4096 characters';
		end if;
	end $$;

	create function vault.encrypt_row() returns trigger
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		if new.secret is null then
			raise not_null_violation using schema = 'vault', table = 'secrets', column = 'secret', message = 'vault: a secret must be given';
		end if;
		perform vault.check_secret(new.secret, new.name, new.description);

		perform from socle.vault_keys for no key update; -- each of two inserts at once counts the secrets of the other
		if (select count(*) from vault.secrets) >= 1000 then
			raise program_limit_exceeded using message = 'vault: a project has at most 1000 secrets';
		end if;

		new.id := coalesce(new.id, gen_random_uuid());
		select e.secret, e.nonce, e.key_id into new.secret, new.nonce, new.key_id from vault.encrypt(new.id, new.secret) e;
		return new;
	end $$;
	create trigger encrypt before insert on vault.secrets for each row execute function vault.encrypt_row();

	-- ON CONFLICT DO UPDATE would encrypt the ciphertext of the row that it leaves out.
	create function vault.refuse_update() returns trigger
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	begin
		if current_user::regrole <> (select c.relowner from pg_class c where c.oid = tg_relid) then
			raise insufficient_privilege using message = 'vault.secrets is changed by vault.update_secret only';
		end if;
		return null;
	end $$;
	create trigger refuse_update before update on vault.secrets for each statement execute function vault.refuse_update();

	create function vault.create_secret(new_secret text, new_name text default null, new_description text default '',
		new_key_id uuid default null) returns uuid
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	declare
		created uuid;
	begin
		if new_key_id is not null then
			raise notice 'vault.create_secret: new_key_id is ignored: a project has one key';
		end if;
		insert into vault.secrets (secret, name, description) values (new_secret, new_name, coalesce(new_description, ''))
		returning id into created;
		return created;
	end $$;

	create function vault.update_secret(secret_id uuid, new_secret text default null, new_name text default null,
		new_description text default null, new_key_id uuid default null) returns void
	language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
	begin
		if new_key_id is not null then
			raise notice 'vault.update_secret: new_key_id is ignored: a project has one key';
		end if;
		perform vault.check_secret(new_secret, new_name, new_description);

		update vault.secrets s set name = coalesce(new_name, s.name), description = coalesce(new_description, s.description),
			updated_at = now()
		where s.id = secret_id;
		if not found then
			raise notice 'vault.update_secret: no secret has the id %', secret_id;
		elsif new_secret is not null then
			update vault.secrets s set secret = e.secret, nonce = e.nonce, key_id = e.key_id
			from vault.encrypt(secret_id, new_secret) e where s.id = secret_id;
		end if;
	end $$;

	-- Called by the restore into a new project. A secret that cannot be decrypted stays as it is.
	create function vault.change_key(former uuid) returns void
	language plpgsql set search_path = pg_catalog, pg_temp as $$
	declare
		s vault.secrets;
	begin
		for s in select t.* from vault.secrets t where t.key_id = former loop
			begin
				update vault.secrets t set secret = e.secret, nonce = e.nonce, key_id = e.key_id
				from vault.encrypt(s.id, vault.decrypt(s.id, s.name, s.secret, s.nonce, s.key_id)) e where t.id = s.id;
			exception when data_exception then
				null;
			end;
		end loop;
	end $$;

	revoke execute on all functions in schema vault from public;
	grant usage on schema vault to service_role;
	grant select, delete on vault.secrets, vault.decrypted_secrets to service_role;
	grant execute on function vault.create_secret(text, text, text, uuid), vault.update_secret(uuid, text, text, text, uuid),
		vault.decrypt(uuid, text, text, bytea, uuid) to service_role;
end $migration$;

-- Nothing of a user refers to schema vault, as to cron and net.
do $migration$
declare
	definition constant text := pg_get_functiondef('socle.refuse_references()'::regprocedure);
	changed constant text := replace(definition, '(''cron'', ''net'')', '(''cron'', ''net'', ''vault'')');
begin
	if changed = definition then
		raise exception 'socle.refuse_references does not name cron and net';
	end if;
	execute changed;
end $migration$;
-- +goose StatementEnd
