package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

const annUUID = "5e1f4c1c-3f0e-4a4b-9a51-0d7f6f6b2f10"

// TestReadUsers reads users from each format of files.
func TestReadUsers(t *testing.T) {
	t.Parallel()

	dump, err := os.ReadFile("../pgdump/testdata/supabase.sql")
	if err != nil {
		t.Fatal(err)
	}

	for text, want := range map[string]string{
		"id,email,encrypted_password,created_at,raw_user_meta_data,is_anonymous,unknown\n" +
			annUUID + `,ann@example.com,$2a$10$x,2025-01-31 12:00:00.5+00,"{""name"": ""Ann""}",f,x` + "\n" +
			annUUID + ",,,yesterday,,,\n" + annUUID + ",,,,{,,\n": `2 {"created_at":"2025-01-31T12:00:00.5Z","email":"ann@example.com","is_anonymous":false,"password_hash":"$2a$10$x","user_metadata":{"name":"Ann"},"uuid":"` + annUUID + `"} <nil>
3 {"uuid":"` + annUUID + `"} created_at must be a time, such as 2026-01-31T12:00:00Z
4 {"uuid":"` + annUUID + `"} user_metadata must be JSON
`,
		"\xef\xbb\xbf" + `{"uuid": "` + annUUID + `", "email": "ann@example.com", "app_metadata": {"plan": "pro"}, "role": null}` +
			"\n\nnonsense\n" + `{"id": "x", "deleted_at": "2025-01-31"}`: `1 {"app_metadata":{"plan":"pro"},"email":"ann@example.com","uuid":"` + annUUID + `"} <nil>
3 {} the line is not a JSON object
`,
		"--\n-- PostgreSQL database dump\n--\n" +
			"COPY \"auth\".\"users\" (\"id\", \"email\", \"raw_user_meta_data\", \"deleted_at\") FROM stdin;\n" +
			annUUID + "\tann@example.com\t{\"name\": \"A\\\\\"nn\"}\t\\N\nx\tgone@example.com\t{}\t2025-01-31 12:00:00+00\n\\.\n" +
			"COPY auth.identities (provider_id, user_id, identity_data, provider) FROM stdin;\n" +
			"g1\t" + annUUID + "\t{\"sub\": \"g1\"}\tgoogle\nx\t" + annUUID + "\t{}\temail\n\\.\n": `5 {"email":"ann@example.com","identities":[{"identity_data":{"sub":"g1"},"provider":"google","provider_id":"g1"}],"user_metadata":{"name":"A\"nn"},"uuid":"` + annUUID + `"} <nil>
`,
		string(dump): `416 {"email":"ada@example.com","user_metadata":{"username": "ada"},"uuid":"00000000-0000-0000-0000-000000000001"} <nil>
417 {"email":"grace@example.com","user_metadata":{"username": "grace"},"uuid":"00000000-0000-0000-0000-000000000002"} <nil>
`,
	} {
		var got strings.Builder
		err := readUsers(t.Context(), strings.NewReader(text), func(u sourceUser) error {
			members, err := json.Marshal(u.members)
			fmt.Fprintf(&got, "%d %s %v\n", u.line, members, u.err)

			return err
		})
		if err != nil || strings.ReplaceAll(got.String(), ": ", ":") != strings.ReplaceAll(want, ": ", ":") {
			t.Errorf("%.80s:\ngot  %s%v\nwant %s", text, got.String(), err, want)
		}
	}

	for text, want := range map[string]string{
		"":                  "the file is empty",
		"name,email\na,b\n": "no column uuid or id",
		"-- x\n":            "no COPY with rows of auth.users",
		"COPY auth.users (id) FROM stdin;\n" + annUUID + "\n": "cut off",
		"COPY auth.users (id) FROM stdin;\na\tb\n\\.\n":       "2 values for 1 columns",
	} {
		err := readUsers(t.Context(), strings.NewReader(text), func(sourceUser) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}
