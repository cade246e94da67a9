-- The types and functions of http. Those that send a request fail: SQL can't wait for another server's response, as its
-- transaction and its connection would wait too.

create domain extensions.http_method as text;
create type extensions.http_header as (field character varying, value character varying);
create type extensions.http_request as (method extensions.http_method, uri character varying,
	headers extensions.http_header[], content_type character varying, content character varying);
create type extensions.http_response as (status integer, content_type character varying, headers extensions.http_header[],
	content character varying);

create function extensions.http(request extensions.http_request) returns extensions.http_response
language plpgsql as $$
begin
	raise feature_not_supported using message = 'SQL can''t wait for the response of another server',
		hint = 'net.http_get() and net.http_post() send a request and return at once. An edge function can wait for the response.';
end $$;

create function extensions.http_get(uri character varying) returns extensions.http_response
language sql as $$ select extensions.http(('GET', uri, null, null, null)::extensions.http_request) $$;

create function extensions.http_get(uri character varying, data jsonb) returns extensions.http_response
language sql as $$ select extensions.http(('GET', uri, null, null, null)::extensions.http_request) $$;

create function extensions.http_head(uri character varying) returns extensions.http_response
language sql as $$ select extensions.http(('HEAD', uri, null, null, null)::extensions.http_request) $$;

create function extensions.http_delete(uri character varying) returns extensions.http_response
language sql as $$ select extensions.http(('DELETE', uri, null, null, null)::extensions.http_request) $$;

create function extensions.http_delete(uri character varying, content character varying, content_type character varying)
returns extensions.http_response
language sql as $$ select extensions.http(('DELETE', uri, null, content_type, content)::extensions.http_request) $$;

create function extensions.http_post(uri character varying, content character varying, content_type character varying)
returns extensions.http_response
language sql as $$ select extensions.http(('POST', uri, null, content_type, content)::extensions.http_request) $$;

create function extensions.http_post(uri character varying, data jsonb) returns extensions.http_response
language sql as $$ select extensions.http(('POST', uri, null, null, null)::extensions.http_request) $$;

create function extensions.http_put(uri character varying, content character varying, content_type character varying)
returns extensions.http_response
language sql as $$ select extensions.http(('PUT', uri, null, content_type, content)::extensions.http_request) $$;

create function extensions.http_patch(uri character varying, content character varying, content_type character varying)
returns extensions.http_response
language sql as $$ select extensions.http(('PATCH', uri, null, content_type, content)::extensions.http_request) $$;

create function extensions.http_header(field character varying, value character varying) returns extensions.http_header
language sql immutable parallel safe as $$ select (field, value)::extensions.http_header $$;

create function extensions.http_set_curlopt(curlopt character varying, value character varying) returns boolean
language sql as $$ select true $$;

create function extensions.http_reset_curlopt() returns boolean
language sql as $$ select true $$;

create function extensions.urlencode(string character varying) returns text
language sql immutable strict parallel safe as $$
	select coalesce(string_agg(case
		when c ~ '^[A-Za-z0-9_.~-]$' then c
		when c = ' ' then '+'
		else regexp_replace(upper(encode(convert_to(c, 'UTF8'), 'hex')), '(..)', '%\1', 'g')
	end, '' order by n), '')
	from string_to_table(string, null) with ordinality as characters (c, n)
$$;

create function extensions.urlencode(data jsonb) returns text
language sql immutable strict parallel safe as $$
	select string_agg(extensions.urlencode(key::character varying) || '=' || extensions.urlencode(coalesce(value, '')::character varying), '&')
	from jsonb_each_text(data)
$$;

create function extensions.text_to_bytea(data text) returns bytea
language sql immutable strict parallel safe as $$ select convert_to(data, 'UTF8') $$;

create function extensions.bytea_to_text(data bytea) returns text
language sql immutable strict parallel safe as $$ select convert_from(data, 'UTF8') $$;

grant execute on function extensions.http(extensions.http_request), extensions.http_get(character varying),
	extensions.http_get(character varying, jsonb), extensions.http_head(character varying),
	extensions.http_delete(character varying),
	extensions.http_delete(character varying, character varying, character varying),
	extensions.http_post(character varying, character varying, character varying),
	extensions.http_post(character varying, jsonb),
	extensions.http_put(character varying, character varying, character varying),
	extensions.http_patch(character varying, character varying, character varying),
	extensions.http_header(character varying, character varying),
	extensions.http_set_curlopt(character varying, character varying), extensions.http_reset_curlopt(),
	extensions.urlencode(character varying), extensions.urlencode(jsonb), extensions.text_to_bytea(text),
	extensions.bytea_to_text(bytea) to public;
