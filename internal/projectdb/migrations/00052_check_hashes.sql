-- +goose Up
-- +goose StatementBegin

-- From migration 47. The last character of bcrypt's 31 has four bits of the hash, so it is one of sixteen: no password would match
-- another one. A salt can have unused bits, as some libraries set them.
create or replace function auth.check_hash(hash text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
	costs constant text[] := regexp_match(hash,
		'^\$argon2id\$v=19\$m=([1-9][0-9]{0,4}),t=([1-9][0-9]?),p=([1-9][0-9]?)\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{43}$');
begin
	if hash ~ '^\$2[aby]\$(0[4-9]|1[0-2])\$[./A-Za-z0-9]{52}[.CGKOSWaeimquy26]$'
		or (costs[1]::bigint <= 77824 and costs[1]::bigint * costs[2]::bigint <= 155648) then
		return;
	end if;
	raise check_violation using schema = 'auth', table = 'users', column = 'encrypted_password',
		message = case when starts_with(hash, '$2')
			then 'encrypted_password is no hash of bcrypt: $2a$, $2b$ or $2y$, a cost of 4 to 12, and 53 characters of its alphabet'
			else 'encrypted_password must be a hash: bcrypt of cost 4 to 12, or argon2id of a moderate cost' end,
		hint = 'crypt(''password'', gen_salt(''bf'')) makes one.';
end $$;
-- +goose StatementEnd
