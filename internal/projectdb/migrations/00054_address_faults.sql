-- +goose Up
-- +goose StatementBegin

-- From migration 47, with the fault of an address in the message.
create or replace function auth.clean_email(address text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
declare
	clean constant text := lower(btrim(address, E' \t\r\n') collate "C");
	atom constant text := '[a-z0-9!#$%&''*+/=?^_`{|}~-]+';
	atoms constant text := atom || '(\.' || atom || ')*';
	fault text;
begin
	if octet_length(clean) > 254 or clean collate "C" !~ ('^' || atoms || '@' || atoms || '$') or clean like '%@-%'
		or octet_length(split_part(clean, '@', 1)) > 64 or split_part(clean, '@', 2) like '%xn--%' then
		fault := case
			when octet_length(clean) > 254 then 'it has more than 254 bytes'
			when octet_length(clean) > length(clean) then 'it has characters beyond ASCII'
			when clean not like '%@%' then 'it has no @'
			when clean like '%@%@%' then 'it has more than one @'
			when clean like '@%' then 'nothing stands before the @'
			when clean like '%@' then 'nothing stands after the @'
			when clean ~ '\s' then 'it has a space'
			when clean ~ '(^|@|\.)\.|\.(@|$)' then 'a dot must stand between two other characters'
			when clean like '%@-%' then 'its domain begins with -'
			when octet_length(split_part(clean, '@', 1)) > 64 then 'more than 64 bytes stand before the @'
			when split_part(clean, '@', 2) like '%xn--%' then 'its domain is in Punycode'
			else format('it has the character %L', substring(clean collate "C" from '[^a-z0-9!#$%&''*+/=?^_`{|}~.@-]'))
		end;
		raise check_violation using schema = 'auth', table = 'users', column = 'email',
			message = format('%L is no e-mail address: %s', left(address, 254), fault),
			hint = case when fault ~ 'ASCII|Punycode' then 'The import of end users takes addresses of other languages.'
				else 'An address has the form ann@example.com.' end;
	end if;
	return clean;
end $$;
-- +goose StatementEnd
