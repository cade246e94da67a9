package enduser

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/socle-dev/socle/internal/pg"
)

const maxMetadata = 16 << 10 // bytes of a user's metadata of either kind

// cleanMetadata returns a JSON object, {} for none. It fails with Invalid if that is no object or
// too large.
func cleanMetadata(name string, text json.RawMessage) (json.RawMessage, error) {
	if len(text) == 0 || string(text) == "null" {
		return json.RawMessage("{}"), nil
	}

	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil {
		return nil, errInvalid("%s must be an object", name)
	}
	if len(text) > maxMetadata {
		return nil, errInvalid("%s must have at most %d bytes", name, maxMetadata)
	}
	if !pg.StorableJSON(text) {
		return nil, errInvalid("%s must not contain null characters, lone surrogates and numbers out of range", name)
	}

	return text, nil
}

// mergeMetadata returns old with the members in changes replaced. null removes a member.
func mergeMetadata(name string, old, changes json.RawMessage) (json.RawMessage, error) {
	changes, err := cleanMetadata(name, changes)
	if err != nil {
		return nil, err
	}

	var all, more map[string]json.RawMessage
	if json.Unmarshal(old, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	if err := json.Unmarshal(changes, &more); err != nil {
		return nil, err
	}

	for key, value := range more {
		if string(value) == "null" {
			delete(all, key)
			continue
		}
		all[key] = value
	}

	text, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}

	return cleanMetadata(name, text)
}

// mergeUserMetadata merges members into a user's metadata, under the row lock: an application's
// tabs change different members at once.
func mergeUserMetadata(ctx context.Context, tx pgx.Tx, id uuid.UUID, members json.RawMessage) error {
	old, err := pg.Value[json.RawMessage](ctx, tx, `
		select coalesce(raw_user_meta_data, '{}') from auth.users where id = @id for no key update`,
		pgx.StrictNamedArgs{"id": id})
	if err != nil {
		return err
	}

	metadata, err := mergeMetadata("user_metadata", old, members)
	if err != nil {
		return err
	}

	_, err = pg.Exec(ctx, tx, `update auth.users set raw_user_meta_data = @data::jsonb, updated_at = now() where id = @id`,
		pgx.StrictNamedArgs{"id": id, "data": string(metadata)})
	return err
}

// providers returns the application metadata that name the ways to sign in.
func providers(names ...string) json.RawMessage {
	if len(names) == 0 {
		return json.RawMessage("{}")
	}

	text, _ := json.Marshal(map[string]any{"provider": names[0], "providers": names}) // strings have no error
	return text
}

// addressProviders returns the providers for an address and a number, either of which may be
// absent.
func addressProviders(email, phone string) []string {
	names := []string{}
	if email != "" {
		names = append(names, "email")
	}
	if phone != "" {
		names = append(names, "phone")
	}

	return names
}
