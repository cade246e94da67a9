-- +goose Up

-- The request log names the table, the failure and the user, so that it answers why a request failed.
alter table platform.requests
	add column schema_name text,
	add column query text,
	add column error_code text,
	add column error_message text,
	add column end_user_uuid uuid,
	add column role text,
	add column row_count bigint,
	add column bytes bigint,
	add column user_agent text;
comment on table platform.requests is 'requests to projects: no value of a query, no body and no token. Its partitions, one a day, are in a schema of their own, made when they are needed';
comment on column platform.requests.route is 'pattern of the route; of the interfaces of applications with the name of the table, function or bucket';
comment on column platform.requests.schema_name is 'schema of the table or function; null: the default one';
comment on column platform.requests.query is 'query string with its values cut';
comment on column platform.requests.error_message is 'message of the failure, without values of the client';
comment on column platform.requests.row_count is 'rows in the response, or changed ones';
comment on column platform.requests.bytes is 'size of the response''s body';
