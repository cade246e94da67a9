package repository

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPlanSettings compares settings as a project has them with those of a configuration.
func TestPlanSettings(t *testing.T) {
	t.Parallel()

	const current = `{"siteUrl": "http://localhost:3000", "signUp": true, "redirectUrls": ["https://a", "https://b"],
		"providers": {"google": {"enabled": true, "client_id": "g"}}, "hooks": {"send_email": "https://a"},
		"sms": {"sign_in": true, "interval_seconds": 60}, "smtp": {"url": "smtp://a"}, "mails": {}, "captcha": {"enabled": false}}`

	for name, test := range map[string]struct {
		settings  []Setting
		want      []Change
		body      string
		unchanged int
	}{
		"same": {settings: []Setting{
			{Member: []string{"site_url"}, Value: "http://localhost:3000"}, {Member: []string{"sign_up"}, Value: true},
			{Member: []string{"providers", "apple", "enabled"}, Value: false},
			{Member: []string{"captcha", "enabled"}, Value: false},
			{Member: []string{"sms", "interval_seconds"}, Value: 60}, {Member: []string{"hooks", "none"}},
			{Member: []string{"redirect_urls"}, Value: []string{"https://a", "https://b"}},
		}, body: `{}`, unchanged: 7},
		"scalars": {settings: []Setting{
			{Member: []string{"site_url"}, Value: "https://a"}, {Member: []string{"sign_up"}, Value: false}},
			want: []Change{{"sign_up", "true", "false"}, {"site_url", "http://localhost:3000", "https://a"}},
			body: `{"sign_up":false,"site_url":"https://a"}`},
		"list": {settings: []Setting{{Member: []string{"redirect_urls"}, Value: []string{"https://a", "https://c"}}},
			want: []Change{{"redirect_urls", "", "+https://c -https://b"}},
			body: `{"redirect_urls":["https://a","https://c"]}`},
		"a provider beside another": {
			settings: []Setting{{Member: []string{"providers", "github"},
				Value: map[string]any{"enabled": true, "client_id": "x"}}},
			want: []Change{{"providers.github.client_id", "", "x"}, {"providers.github.enabled", "", "true"}},
			body: `{"providers":{"github":{"client_id":"x","enabled":true},"google":{"client_id":"g","enabled":true}}}`},
		"a provider off": {settings: []Setting{{Member: []string{"providers", "google", "enabled"}, Value: false}},
			want: []Change{{"providers.google.enabled", "true", "false"}},
			body: `{"providers":{"google":{"client_id":"g","enabled":false}}}`},
		"removed": {settings: []Setting{{Member: []string{"hooks", "send_email"}}, {Member: []string{"smtp"}}},
			want: []Change{{"hooks.send_email", "https://a", ""}, {"smtp.url", "smtp://a", ""}},
			body: `{"hooks":{},"smtp":{}}`},
		"long and secret texts": {settings: []Setting{
			{Member: []string{"mails", "invite"}, Value: map[string]any{"subject": "Hi", "html": "<p>\n</p>\n"}},
			{Member: []string{"sms", "test_numbers"}, Value: map[string]any{"49": "123456"}}},
			want: []Change{{"mails.invite.html", "", "2 lines"}, {"mails.invite.subject", "", "Hi"},
				{"sms.test_numbers.49", "", "a code"}},
			body: `{"mails":{"invite":{"html":"<p>\n</p>\n","subject":"Hi"}},` +
				`"sms":{"interval_seconds":60,"sign_in":true,"test_numbers":{"49":"123456"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var before map[string]any
			if err := json.Unmarshal([]byte(current), &before); err != nil {
				t.Fatal(err)
			}

			u, err := PlanSettings(before, test.settings)
			if err != nil {
				t.Fatal(err)
			}

			body, err := json.Marshal(u.Body)
			if diff := cmp.Diff(unescape(body), test.body); diff != "" || err != nil {
				t.Errorf("body (-got +want):\n%s%v", diff, err)
			}
			if diff := cmp.Diff(u.Changes, test.want); diff != "" {
				t.Errorf("changes (-got +want):\n%s", diff)
			}
			if u.Unchanged != test.unchanged {
				t.Errorf("got %d unchanged, want %d", u.Unchanged, test.unchanged)
			}
		})
	}
}

// unescape returns JSON without the escapes of Go for HTML.
func unescape(text []byte) string {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return string(text)
	}

	var b jsonText
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)

	return string(b[:len(b)-1])
}

type jsonText []byte

func (t *jsonText) Write(b []byte) (int, error) { *t = append(*t, b...); return len(b), nil }

// TestPlanNewProject lists all that the configuration says, whatever the defaults are.
func TestPlanNewProject(t *testing.T) {
	t.Parallel()

	u, err := PlanSettings(nil, []Setting{{Member: []string{"sign_up"}, Value: false}, {Member: []string{"smtp"}},
		{Member: []string{"sms"}, Value: map[string]any{"sign_in": true}}})
	want := []Change{{"sign_up", "", "false"}, {"sms.sign_in", "", "true"}}
	if diff := cmp.Diff(u.Changes, want); diff != "" || err != nil {
		t.Errorf("(-got +want):\n%s%v", diff, err)
	}
}

func TestPlanBucket(t *testing.T) {
	t.Parallel()

	public, size, types := true, int64(10), []string{"image/png"}
	bucket := Bucket{Name: "photos", Public: &public, MaxSize: &size, Types: &types}
	u, err := PlanBucket(bucket, &Container{IsPublic: true, MaxSize: 20, Types: []string{"image/png"}})
	if diff := cmp.Diff(u.Changes, []Change{{"max_file_size", "20", "10"}}); diff != "" || err != nil {
		t.Errorf("(-got +want):\n%s%v", diff, err)
	}
	u, err = PlanBucket(bucket, &Container{IsPublic: true, MaxSize: 10, Types: types})
	if len(u.Body) > 0 || err != nil {
		t.Errorf("the same: got %v, %v", u.Body, err)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()

	got := ParseVariables("A=1\r\n# B=2\nexport C = \"x # y\" # z\nD='it''s\nE=a b # c\nnot a line\nF=\n")
	want := map[string]string{"A": "1", "C": "x # y", "D": "it", "E": "a b", "F": ""}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestMergeVariables(t *testing.T) {
	t.Parallel()

	next, _ := FindFramework("next")
	for before, want := range map[string]string{
		"": "NEXT_PUBLIC_SUPABASE_URL=u\nNEXT_PUBLIC_SUPABASE_PUBLISHABLE_KEY=k\nNEXT_PUBLIC_SUPABASE_ANON_KEY=k\n",
		"A=1\r\nexport NEXT_PUBLIC_SUPABASE_URL=old\r\nB=2": "A=1\r\nNEXT_PUBLIC_SUPABASE_URL=u\r\nB=2\r\n" +
			"NEXT_PUBLIC_SUPABASE_PUBLISHABLE_KEY=k\r\nNEXT_PUBLIC_SUPABASE_ANON_KEY=k\r\n",
	} {
		if got := MergeVariables(before, next.Variables("u", "k")); got != want {
			t.Errorf("%q: got %q, want %q", before, got, want)
		}
	}
}

func TestFramework(t *testing.T) {
	t.Parallel()

	for manifest, want := range map[string]string{
		`{"dependencies": {"next": "15"}}`: "next", `{"devDependencies": {"vite": "6"}}`: "vite",
		`{"dependencies": {"expo": "1"}, "devDependencies": {"vite": "6"}}`: "expo", `{`: "none",
	} {
		r := &Repository{Root: write(t, map[string]string{"package.json": manifest})}
		if got := r.Framework().Name; got != want {
			t.Errorf("%s: got %s, want %s", manifest, got, want)
		}
	}
}

func TestSeedRecord(t *testing.T) {
	t.Parallel()

	got := Seed{Path: `it's\a.sql`, Hash: "ab"}.Record()
	want := `insert into supabase_migrations.seed_files (path, hash) values ( E'it''s\\a.sql', 'ab')`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
