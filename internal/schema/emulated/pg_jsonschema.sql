-- The functions of pg_jsonschema, for the drafts 6 to 2020-12 of JSON Schema. Formats are annotations. References lead to parts
-- of the same schema. Places in errors are JSON paths.

create function extensions.json_is_type(instance jsonb, name text) returns boolean
language sql immutable strict parallel safe as $$
	select case
		when name <> 'integer' then name = jsonb_typeof(instance)
		when jsonb_typeof(instance) = 'number' then (instance #>> '{}')::numeric % 1 = 0
		else false
	end
$$;

create function extensions.json_schema_part(root jsonb, reference text) returns jsonb
language plpgsql immutable strict parallel safe as $$
declare
	part jsonb := root;
	step text;
begin
	if reference !~ '^#(/|$)' then
		raise feature_not_supported using message = format('the reference %L leads out of the schema', reference),
			hint = 'References are #, and #/$defs/name and the like.';
	end if;

	foreach step in array string_to_array(substr(reference, 3), '/') loop
		part := part #> array[replace(replace(step, '~1', '/'), '~0', '~')];
	end loop;
	if part is null then
		raise invalid_parameter_value using message = format('the reference %L leads to no part of the schema', reference);
	end if;
	return part;
end $$;

create function extensions.json_scalar_errors(schema jsonb, instance jsonb, place text) returns text[]
language plpgsql immutable strict parallel safe as $$
declare
	scalar constant text := instance #>> '{}';
	errors text[] := '{}';
	keyword text;
	bound text;
begin
	for keyword, bound in select * from jsonb_each_text(schema) loop
		continue when jsonb_typeof(instance) = 'number' and case keyword
			when 'minimum' then scalar::numeric >= bound::numeric
			when 'maximum' then scalar::numeric <= bound::numeric
			when 'exclusiveMinimum' then scalar::numeric > bound::numeric
			when 'exclusiveMaximum' then scalar::numeric < bound::numeric
			when 'multipleOf' then scalar::numeric % bound::numeric = 0
			else true
		end;
		continue when jsonb_typeof(instance) = 'string' and case keyword
			when 'minLength' then char_length(scalar) >= bound::numeric
			when 'maxLength' then char_length(scalar) <= bound::numeric
			when 'pattern' then scalar ~ bound
			else true
		end;
		errors := errors || format('%s does not satisfy %s: %s', place, keyword, bound);
	end loop;
	return errors;
end $$;

create function extensions.json_array_errors(root jsonb, schema jsonb, instance jsonb, place text) returns text[]
language plpgsql immutable strict parallel safe as $$
declare
	size constant integer := jsonb_array_length(instance);
	is_tuple constant boolean := coalesce(jsonb_typeof(schema -> 'items') = 'array', false);
	first_parts constant jsonb := coalesce(schema -> 'prefixItems', case when is_tuple then schema -> 'items' end, '[]');
	other_part constant jsonb := case when is_tuple then schema -> 'additionalItems' else schema -> 'items' end;
	errors text[] := '{}';
	element jsonb;
	position integer := 0;
	matches integer := 0;
begin
	for element in select * from jsonb_array_elements(instance) loop
		exit when cardinality(errors) >= 100;
		errors := errors || extensions.json_schema_errors(root, coalesce(first_parts -> position, other_part, 'true'), element,
			format('%s[%s]', place, position));
		if schema ? 'contains' then
			matches := matches + extensions.json_schema_matches(root, schema -> 'contains', element)::integer;
		end if;
		position := position + 1;
	end loop;

	if size < (schema ->> 'minItems')::numeric or size > (schema ->> 'maxItems')::numeric then
		errors := errors || format('%s has %s items', place, size);
	end if;
	if schema -> 'uniqueItems' = 'true' and size > (select count(distinct e) from jsonb_array_elements(instance) e) then
		errors := errors || format('%s has items that are equal', place);
	end if;
	if schema ? 'contains' and (matches < coalesce((schema ->> 'minContains')::numeric, 1)
		or matches > (schema ->> 'maxContains')::numeric) then
		errors := errors || format('%s has %s items that contains describes', place, matches);
	end if;
	return errors;
end $$;

create function extensions.json_object_errors(root jsonb, schema jsonb, instance jsonb, place text) returns text[]
language plpgsql immutable strict parallel safe as $$
declare
	size constant bigint := (select count(*) from jsonb_object_keys(instance));
	properties constant jsonb := coalesce(schema -> 'properties', '{}');
	patterns constant jsonb := coalesce(schema -> 'patternProperties', '{}');
	required jsonb := coalesce(schema -> 'required', '[]');
	errors text[] := '{}';
	name text;
	element jsonb;
	part jsonb;
begin
	for part in
		select d.value from unnest('{dependencies,dependentRequired,dependentSchemas}'::text[]) keyword,
			jsonb_each(coalesce(schema -> keyword, '{}')) d
		where instance ? d.key
	loop
		if jsonb_typeof(part) = 'array' then
			required := required || part;
		else
			errors := errors || extensions.json_schema_errors(root, part, instance, place);
		end if;
	end loop;
	errors := errors || array(select format('%s has no %I', place, r) from jsonb_array_elements_text(required) r where not instance ? r);

	for name, element in select * from jsonb_each(instance) loop
		exit when cardinality(errors) >= 100;
		for part in
			select properties -> name where properties ? name
			union all select p.value from jsonb_each(patterns) p where name ~ p.key
			union all select schema -> 'additionalProperties' where schema ? 'additionalProperties' and not properties ? name
				and not exists (select from jsonb_object_keys(patterns) p where name ~ p)
		loop
			errors := errors || extensions.json_schema_errors(root, part, element, format('%s.%I', place, name));
		end loop;
		if schema ? 'propertyNames' then
			errors := errors || extensions.json_schema_errors(root, schema -> 'propertyNames', to_jsonb(name),
				format('the name %I in %s', name, place));
		end if;
	end loop;

	if size < (schema ->> 'minProperties')::numeric or size > (schema ->> 'maxProperties')::numeric then
		errors := errors || format('%s has %s properties', place, size);
	end if;
	return errors;
end $$;

create function extensions.json_schema_errors(root jsonb, schema jsonb, instance jsonb, place text) returns text[]
language plpgsql immutable strict parallel safe as $$
declare
	errors text[] := '{}';
	keyword text;
	argument jsonb;
	satisfied boolean;
begin
	if schema = 'false' then
		return array[format('%s is not allowed', place)];
	elsif schema = 'true' then
		return errors;
	elsif jsonb_typeof(schema) <> 'object' then
		raise invalid_parameter_value using message = 'a JSON schema must be an object or a boolean';
	end if;

	for keyword, argument in select * from jsonb_each(schema) loop
		satisfied := true;
		case keyword
			when '$ref' then
				errors := errors
					|| extensions.json_schema_errors(root, extensions.json_schema_part(root, argument #>> '{}'), instance, place);
			when 'type' then
				satisfied := exists (select from jsonb_array_elements_text(
					case jsonb_typeof(argument) when 'array' then argument else jsonb_build_array(argument) end) t
					where extensions.json_is_type(instance, t));
			when 'enum' then
				satisfied := exists (select from jsonb_array_elements(argument) e where e = instance);
			when 'const' then
				satisfied := instance = argument;
			when 'allOf' then
				errors := errors || array(select unnest(extensions.json_schema_errors(root, e, instance, place))
					from jsonb_array_elements(argument) e);
			when 'anyOf' then
				satisfied := exists (select from jsonb_array_elements(argument) e
					where extensions.json_schema_matches(root, e, instance));
			when 'oneOf' then
				satisfied := (select count(*) = 1 from jsonb_array_elements(argument) e
					where extensions.json_schema_matches(root, e, instance));
			when 'not' then
				satisfied := not extensions.json_schema_matches(root, argument, instance);
			when 'if' then
				errors := errors || extensions.json_schema_errors(root, coalesce(schema -> case
					when extensions.json_schema_matches(root, argument, instance) then 'then' else 'else' end, 'true'), instance, place);
			when '$dynamicRef', '$recursiveRef', 'unevaluatedItems', 'unevaluatedProperties' then
				raise feature_not_supported using message = format('%s in a JSON schema is not supported', keyword);
			else
		end case;

		if not satisfied then
			errors := errors || format('%s does not satisfy %s: %s', place, keyword, left(argument::text, 200));
		end if;
	end loop;

	return errors || case jsonb_typeof(instance)
		when 'object' then extensions.json_object_errors(root, schema, instance, place)
		when 'array' then extensions.json_array_errors(root, schema, instance, place)
		when 'number' then extensions.json_scalar_errors(schema, instance, place)
		when 'string' then extensions.json_scalar_errors(schema, instance, place)
	end;
end $$;

create function extensions.json_schema_matches(root jsonb, schema jsonb, instance jsonb) returns boolean
language sql immutable strict parallel safe as $$
	select extensions.json_schema_errors(root, schema, instance, '$') = '{}'
$$;

create function extensions.json_matches_schema(schema json, instance json) returns boolean
language sql immutable strict parallel safe as $$
	select extensions.json_schema_matches(schema::jsonb, schema::jsonb, instance::jsonb)
$$;

create function extensions.jsonb_matches_schema(schema json, instance jsonb) returns boolean
language sql immutable strict parallel safe as $$
	select extensions.json_schema_matches(schema::jsonb, schema::jsonb, instance)
$$;

create function extensions.jsonschema_validation_errors(schema json, instance json) returns text[]
language sql immutable strict parallel safe as $$
	select extensions.json_schema_errors(schema::jsonb, schema::jsonb, instance::jsonb, '$')
$$;

create function extensions.jsonschema_is_valid(schema json) returns boolean
language sql immutable strict parallel safe as $$
	select extensions.json_matches_schema('{
		"$defs": {
			"count": {"type": "integer", "minimum": 0},
			"schemas": {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
			"members": {"type": "object", "additionalProperties": {"$ref": "#"}},
			"names": {"type": "array", "items": {"type": "string"}, "uniqueItems": true},
			"type": {"enum": ["array", "boolean", "integer", "null", "number", "object", "string"]}
		},
		"type": ["object", "boolean"],
		"properties": {
			"$ref": {"type": "string"}, "enum": {"type": "array"},
			"type": {"anyOf": [{"$ref": "#/$defs/type"}, {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/$defs/type"}}]},
			"allOf": {"$ref": "#/$defs/schemas"}, "anyOf": {"$ref": "#/$defs/schemas"}, "oneOf": {"$ref": "#/$defs/schemas"},
			"not": {"$ref": "#"}, "if": {"$ref": "#"}, "then": {"$ref": "#"}, "else": {"$ref": "#"},
			"minimum": {"type": "number"}, "maximum": {"type": "number"}, "exclusiveMinimum": {"type": "number"},
			"exclusiveMaximum": {"type": "number"}, "multipleOf": {"type": "number", "exclusiveMinimum": 0},
			"minLength": {"$ref": "#/$defs/count"}, "maxLength": {"$ref": "#/$defs/count"}, "pattern": {"type": "string"},
			"minItems": {"$ref": "#/$defs/count"}, "maxItems": {"$ref": "#/$defs/count"}, "uniqueItems": {"type": "boolean"},
			"items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/schemas"}]}, "prefixItems": {"$ref": "#/$defs/schemas"},
			"additionalItems": {"$ref": "#"}, "contains": {"$ref": "#"}, "minContains": {"$ref": "#/$defs/count"},
			"maxContains": {"$ref": "#/$defs/count"}, "minProperties": {"$ref": "#/$defs/count"},
			"maxProperties": {"$ref": "#/$defs/count"}, "required": {"$ref": "#/$defs/names"}, "propertyNames": {"$ref": "#"},
			"properties": {"$ref": "#/$defs/members"}, "patternProperties": {"$ref": "#/$defs/members"},
			"additionalProperties": {"$ref": "#"}, "$defs": {"$ref": "#/$defs/members"}, "definitions": {"$ref": "#/$defs/members"},
			"dependentSchemas": {"$ref": "#/$defs/members"},
			"dependentRequired": {"type": "object", "additionalProperties": {"$ref": "#/$defs/names"}},
			"dependencies": {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#/$defs/names"}]}}
		}
	}', schema)
$$;

grant execute on function extensions.json_is_type(jsonb, text), extensions.json_schema_part(jsonb, text),
	extensions.json_scalar_errors(jsonb, jsonb, text), extensions.json_array_errors(jsonb, jsonb, jsonb, text),
	extensions.json_object_errors(jsonb, jsonb, jsonb, text), extensions.json_schema_errors(jsonb, jsonb, jsonb, text),
	extensions.json_schema_matches(jsonb, jsonb, jsonb), extensions.json_matches_schema(json, json),
	extensions.jsonb_matches_schema(json, jsonb), extensions.jsonschema_validation_errors(json, json),
	extensions.jsonschema_is_valid(json) to public;
