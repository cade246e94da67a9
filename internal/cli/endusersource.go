package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// sourceUser is a user of a file, in the members of the operation importEndUsers.
type sourceUser struct {
	line    int
	members map[string]any
	leftOut []string // columns that are no members
	err     error    // failure that concerns this user only
}

// Bounds of a line: of a file with users, and of a dump, which has other tables too.
const (
	maxUserLine = 1 << 20
	maxCopyLine = 256 << 20
)

// userMembers maps columns of a file, also those of Supabase's auth.users, to members.
var userMembers = map[string]string{
	"uuid": "uuid", "id": "uuid", "email": "email", "phone": "phone", "role": "role",
	"password_hash": "password_hash", "encrypted_password": "password_hash",
	"email_confirmed_at": "email_confirmed_at", "phone_confirmed_at": "phone_confirmed_at",
	"invited_at": "invited_at", "last_sign_in_at": "last_sign_in_at",
	"banned_until": "banned_until", "created_at": "created_at", "is_anonymous": "is_anonymous",
	"app_metadata": "app_metadata", "raw_app_meta_data": "app_metadata",
	"user_metadata": "user_metadata", "raw_user_meta_data": "user_metadata",
	"identities": "identities",
}

// userMember returns the value of a member from a text. Absent ones are nil.
func userMember(member, text string) (any, error) {
	if text == "" {
		return nil, nil
	}

	switch member {
	case "is_anonymous":
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("%s must be true or false", member)
		}
		return yes, nil
	case "app_metadata", "user_metadata", "identities":
		if !json.Valid([]byte(text)) {
			return nil, fmt.Errorf("%s must be JSON", member)
		}
		return json.RawMessage(text), nil
	}

	if !strings.HasSuffix(member, "_at") && member != "banned_until" {
		return text, nil
	}

	const postgres = "2006-01-02 15:04:05.999999999-07"
	for _, layout := range []string{time.RFC3339Nano, postgres, postgres + ":00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Format(time.RFC3339Nano), nil
		}
	}

	return nil, fmt.Errorf("%s must be a time, such as 2026-01-31T12:00:00Z", member)
}

// userOf returns the user of a row of texts. It returns false for a user that was deleted.
func userOf(line int, columns, values []string) (sourceUser, bool) {
	u := sourceUser{line: line, members: map[string]any{}}
	for i, column := range columns {
		if column == "deleted_at" && values[i] != "" {
			return u, false
		}

		member, ok := userMembers[column]
		if !ok {
			u.leftOut = append(u.leftOut, column)
			continue
		}

		value, err := userMember(member, values[i])
		switch {
		case err != nil:
			u.err = err
		case value != nil:
			u.members[member] = value
		}
	}

	return u, true
}

// readUsers calls f for each user of a file: JSON lines, CSV with a header, or a plain dump of
// Supabase, whose identities come with the users.
func readUsers(ctx context.Context, in io.Reader, f func(sourceUser) error) error {
	buffered := bufio.NewReaderSize(in, 64<<10)
	start, err := buffered.Peek(64)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}

	text := strings.TrimLeft(strings.TrimPrefix(string(start), "\xef\xbb\xbf"), " \t\r\n")
	switch {
	case text == "":
		return errors.New("the file is empty")
	case text[0] == '{':
		return readUserLines(ctx, buffered, f)
	case strings.HasPrefix(text, "--"), strings.HasPrefix(text, "COPY "), strings.HasPrefix(text, "SET "):
		return readUserDump(ctx, buffered, f)
	}

	return readUserCSV(ctx, buffered, f)
}

func readUserLines(ctx context.Context, in io.Reader, f func(sourceUser) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxUserLine)

	for line := 1; lines.Scan(); line++ {
		text := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\xef\xbb\xbf"))
		if text == "" {
			continue
		}

		u := sourceUser{line: line, members: map[string]any{}}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			u.err = errors.New("the line is not a JSON object")
		}
		for name, value := range members {
			member, ok := userMembers[name]
			switch {
			case !ok:
				u.leftOut = append(u.leftOut, name)
			case string(value) != "null":
				u.members[member] = value
			}
		}

		if deletedAt := members["deleted_at"]; len(deletedAt) > 0 && string(deletedAt) != "null" {
			continue
		}
		if err := errors.Join(ctx.Err(), f(u)); err != nil {
			return err
		}
	}

	return lines.Err()
}

func readUserCSV(ctx context.Context, in *bufio.Reader, f func(sourceUser) error) error {
	if mark, err := in.Peek(3); err == nil && string(mark) == "\xef\xbb\xbf" {
		_, _ = in.Discard(3) // already buffered
	}

	rows := csv.NewReader(in)
	columns, err := rows.Read()
	if err != nil {
		return err
	}

	isKnown := false
	for _, c := range columns {
		isKnown = isKnown || userMembers[c] == "uuid"
	}
	if !isKnown {
		return errors.New("the header has no column uuid or id: CSV needs a header with the names of columns")
	}

	for {
		values, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}

		line, _ := rows.FieldPos(0)
		if u, ok := userOf(line, columns, values); ok {
			if err := errors.Join(ctx.Err(), f(u)); err != nil {
				return err
			}
		}
	}
}

// maxHeldUsers bounds the rows of a dump that are held, since its identities may follow its users.
const maxHeldUsers = 1 << 30

// readUserDump reads the rows of auth.identities and auth.users in a plain dump.
func readUserDump(ctx context.Context, in io.Reader, f func(sourceUser) error) error {
	type row struct {
		line int
		text string
	}
	var (
		users       []row
		userColumns []string
		held        int
		identities  = map[string][]map[string]any{}
	)

	err := readCopies(in, func(line int, table string, columns []string, text string) error {
		switch table {
		case "auth.users":
			users, userColumns, held = append(users, row{line, text}), columns, held+len(text)
			if held > maxHeldUsers {
				return fmt.Errorf("line %d: the dump has more than %d MiB of users: import them as CSV", line, maxHeldUsers>>20)
			}
		case "auth.identities":
			values, err := copyValues(line, columns, text)
			if err != nil {
				return err
			}
			addIdentity(identities, columns, values)
		}

		return nil
	})
	if err != nil {
		return err
	}
	if len(users) == 0 {
		return errors.New("the dump has no COPY with rows of auth.users: dump the data of schema auth too")
	}

	for _, r := range users {
		values, err := copyValues(r.line, userColumns, r.text)
		if err != nil {
			return err
		}

		u, ok := userOf(r.line, userColumns, values)
		if !ok {
			continue
		}

		u.leftOut = nil // columns of Supabase's own
		id, _ := u.members["uuid"].(string)
		if all := identities[id]; len(all) > 0 {
			u.members["identities"] = all
		}
		if err := errors.Join(ctx.Err(), f(u)); err != nil {
			return err
		}
	}

	return nil
}

// readCopies calls f for each row of the COPY statements of a plain dump.
func readCopies(in io.Reader, f func(line int, table string, columns []string, text string) error) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxCopyLine)

	var table string
	var columns []string
	for line := 1; lines.Scan(); line++ {
		switch text := lines.Text(); {
		case columns == nil:
			table, columns = copyOf(text)
		case text == `\.`:
			columns = nil
		default:
			if err := f(line, table, columns, text); err != nil {
				return err
			}
		}
	}

	if lines.Err() == nil && columns != nil {
		return errors.New("the dump is cut off")
	}

	return lines.Err()
}

// copyValues returns the values of a row of COPY.
func copyValues(line int, columns []string, text string) ([]string, error) {
	values := strings.Split(text, "\t")
	if len(values) != len(columns) {
		return nil, fmt.Errorf("line %d: %d values for %d columns", line, len(values), len(columns))
	}

	for i := range values {
		values[i] = copyValue(values[i])
	}

	return values, nil
}

// addIdentity adds an account with a provider other than the address and the number, by the UUID of
// its user.
func addIdentity(identities map[string][]map[string]any, columns, values []string) {
	row := map[string]string{}
	for i, c := range columns {
		row[c] = values[i]
	}

	if row["provider"] == "email" || row["provider"] == "phone" || row["provider"] == "" {
		return
	}

	id := row["provider_id"]
	if id == "" { // a dump from before 2023
		id = row["id"]
	}
	data := json.RawMessage(row["identity_data"])
	if !json.Valid(data) {
		data = json.RawMessage("{}")
	}

	identities[row["user_id"]] = append(identities[row["user_id"]],
		map[string]any{"provider": row["provider"], "provider_id": id, "identity_data": data})
}

// copyOf returns the table and the columns of a COPY statement of pg_dump, "" and nil for another
// line.
func copyOf(line string) (table string, columns []string) {
	rest, ok := strings.CutPrefix(line, "COPY ")
	if !ok || !strings.HasSuffix(rest, ") FROM stdin;") {
		return "", nil
	}

	table, list, ok := strings.Cut(strings.TrimSuffix(rest, ") FROM stdin;"), " (")
	if !ok {
		return "", nil
	}

	for _, c := range strings.Split(list, ", ") {
		columns = append(columns, strings.Trim(c, `"`))
	}

	return strings.ReplaceAll(table, `"`, ""), columns
}

// copyEscapes are the escapes that pg_dump writes.
var copyEscapes = strings.NewReplacer(`\\`, `\`, `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v")

// copyValue returns a value of COPY's text format, "" for null.
func copyValue(text string) string {
	if text == `\N` || !strings.Contains(text, `\`) {
		return strings.TrimPrefix(text, `\N`)
	}

	return copyEscapes.Replace(text)
}
