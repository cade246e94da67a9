package api_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// survey is an open form.
type survey struct {
	*apitest.API
	path   string            // of the form
	fields map[string]string // field UUIDs by label
}

// openSurvey creates an open form. fields holds the elements of a JSON array, settings the members
// of an object.
func openSurvey(t *testing.T, a *apitest.API, fields, settings string) survey {
	t.Helper()

	f := survey{a, "/forms/" + a.Create("/forms", `{"name": "Survey"}`), map[string]string{}}
	created := a.Post(f.path+"/fields", `{"fields": [`+fields+`]}`).Want(201)
	for i := range created.Metadata("fields").([]any) {
		f.fields[created.Metadata(fmt.Sprintf("fields.%d.label", i)).(string)] = created.Metadata(
			fmt.Sprintf("fields.%d.uuid", i),
		).(string)
	}

	if settings != "" {
		settings = ", " + settings
	}

	a.Put(f.path, `{"state": "open"`+settings+`}`).Want(200)
	return f
}

// answers returns a body in which labels are replaced by the UUIDs of their fields.
func (f survey) answers(body string) string {
	for label, id := range f.fields {
		body = strings.ReplaceAll(body, `"`+label+`":`, `"`+id+`":`)
	}
	return body
}

// id returns the UUID of the form.
func (f survey) id() string { return strings.TrimPrefix(f.path, "/forms/") }

func (f survey) answer(body string) *apitest.Reply {
	return f.Post(f.path+"/responses", f.answers(`{"answers": `+body+`}`))
}

// everyType has a field of each type except file.
const everyType = `
	{"label": "text", "type": "text", "min_length": 2, "max_length": 5, "pattern": "[a-z😀]+"},
	{"label": "textarea", "type": "textarea"},
	{"label": "number", "type": "number", "min_value": -10, "max_value": 10},
	{"label": "email", "type": "email"},
	{"label": "url", "type": "url"},
	{"label": "phone", "type": "phone"},
	{"label": "date", "type": "date", "date_format": "DD.MM.YYYY", "start_date": "2026-01-01", "end_date": "2026-12-31"},
	{"label": "time", "type": "time", "start_date": "08:00"},
	{"label": "datetime", "type": "datetime"},
	{"label": "checkbox", "type": "checkbox"},
	{"label": "radio", "type": "radio", "options": "a,b"},
	{"label": "select", "type": "select", "options": "[\"a,b\", \"c\"]"},
	{"label": "multiselect", "type": "multiselect", "options": "a,b,c"},
	{"label": "rating", "type": "rating", "min_value": 1, "max_value": 5}`

// TestSubmissions covers responses to the forms of one project.
func TestSubmissions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, a *apitest.API)
	}{
		{"answers of every type", createResponse},
		{"refused answers", createResponseRefuses},
		{"required answers", requiredAnswers},
		{"visitors", visitors},
		{"cross origin", crossOrigin},
		{"closed forms", closedForms},
		{"maximum of responses", maximumResponses},
		{"closed during responses", closeDuringResponses},
		{"definition of a response", responsesKeepDefinition},
		{"changed during responses", fieldChangesDuringResponses},
		{"honeypot", honeypot},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.run(t, a.WithT(t)) })
	}
}

func createResponse(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, everyType, `"success_message": "Thank you"`)
	for _, tt := range []struct{ field, value, kept string }{
		{"text", `"abc"`, `"abc"`}, {"text", `"😀😀"`, `"😀😀"`}, {"textarea", `"a\nb\t<script>"`, `"a\nb\t<script>"`},
		{"textarea", `" \u202e\u200b\ufeff "`, "\" \u202e\u200b\ufeff \""}, {"textarea", `"100%_\\"`, `"100%_\\"`},
		{"number", `1.50`, `1.50`}, {"number", `"-007.5"`, `-7.5`}, {"number", `0`, `0`},
		{"number", `0.000000000000000000000000000001`, `0.000000000000000000000000000001`},
		{"email", `"ann@example.com"`, `"ann@example.com"`},
		{"url", `"https://example.com/a?b#c"`, `"https://example.com/a?b#c"`},
		{"phone", `"+49 (30) 123-45"`, `"+49 (30) 123-45"`}, {"date", `"24.12.2026"`, `"2026-12-24"`},
		{"date", `"2026-01-01"`, `"2026-01-01"`}, {"time", `"08:00"`, `"08:00"`},
		{"datetime", `"2026-02-03T04:05:06Z"`, `"2026-02-03T04:05:06Z"`}, {"checkbox", `true`, `true`},
		{"checkbox", `"false"`, `false`}, {"radio", `"a"`, `"a"`}, {"select", `"a,b"`, `"a,b"`},
		{"multiselect", `["c","a"]`, `["c","a"]`}, {"rating", `5`, `5`}, {"rating", `"1"`, `1`},
	} {
		r := f.answer(`{"`+tt.field+`": `+tt.value+`}`).Want(201).Content("state", "complete").
			Content("successMessage", "Thank you").Content("expiresAt", nil)
		got := a.Get(f.path+"/responses/"+r.Get("uuid").(string)).Want(200).Content("state", "complete").
			Content("answers.0.fieldUuid", f.fields[tt.field]).Content("answers.0.label", tt.field).
			Content("answers.0.type", tt.field)

		var answer struct {
			Content struct {
				Answers []struct{ Value json.RawMessage }
			}
		}
		if err := json.Unmarshal(got.Body, &answer); err != nil {
			t.Fatal(err)
		}

		var value, want any
		number := strings.HasPrefix(tt.field, "number")
		if err := json.Unmarshal(answer.Content.Answers[0].Value, &value); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.kept), &want); err != nil {
			t.Fatal(err)
		}

		if fmt.Sprint(value) != fmt.Sprint(want) || (number && string(answer.Content.Answers[0].Value) != tt.kept) {
			t.Errorf("%s %s: kept %s, want %s", tt.field, tt.value, answer.Content.Answers[0].Value, tt.kept)
		}
	}

	// Empty values are not stored.
	r := f.answer(`{"text": "", "number": null, "multiselect": [], "date": ""}`).Want(201)
	a.Get(f.path+"/responses/"+r.Get("uuid").(string)).Want(200).Content("answers", "[]")
}

func createResponseRefuses(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, everyType, "")
	before := databaseState(t, a)

	for field, bad := range map[string][]string{
		"text":     {`"a"`, `"abcdef"`, `"ABC"`, `"ab\u0000"`, `"ab\n"`, `5`, `true`, `["ab"]`, `{"a": 1}`},
		"textarea": {`"a\u0000b"`, `5`, `{}`, `"` + strings.Repeat("a", 100_001) + `"`},
		"number": {`11`, `-10.0000001`, `1e400`, `1e1`, `"1e1"`, `"x"`, `true`, `[1]`, `{}`,
			strings.Repeat("9", 400), `9223372036854775808`, `"0x1"`, `" 1"`, `"NaN"`},
		"email": {`"ann"`, `"ann@"`, `"Ann <ann@example.com>"`, `"a@b\r\nBcc: c@d"`,
			`"` + strings.Repeat("a", 300) + `@example.com"`, `7`},
		"url":         {`"example.com"`, `"javascript:alert(1)"`, `"ftp://example.com"`, `"https://"`, `1`},
		"phone":       {`"12"`, `"call me"`, `49301234`, `"+49\n30"`},
		"date":        {`"2026-02-30"`, `"2025-12-31"`, `"01.01.2027"`, `"12/24/2026"`, `20260101`, `"2026-1-1"`},
		"time":        {`"07:59"`, `"25:00"`, `"8:00"`, `"noon"`},
		"datetime":    {`"2026-02-03"`, `"now"`, `0`},
		"checkbox":    {`"on"`, `1`, `"TRUE"`, `[true]`},
		"radio":       {`"A"`, `"a,b"`, `["a"]`, `1`},
		"select":      {`"a"`, `"b"`, `""a"`},
		"multiselect": {`["a", "a"]`, `["d"]`, `"a,b"`, `[1]`, `[["a"]]`, `[null]`, `true`},
		"rating":      {`0`, `6`, `1.5`, `1e0`, `"5.0"`, `9223372036854775808`, `"five"`},
	} {
		for _, value := range bad {
			r := f.answer(`{"` + field + `": ` + value + `}`)
			if strings.HasPrefix(value, `""`) { // not JSON
				r.Want(400)
				continue
			}

			if r.Status != 422 {
				t.Errorf("%s %.60s: got %d, want 422\n%s", field, value, r.Status, r.Body)
				continue
			}

			r.Field("answers." + f.fields[field])
		}
	}

	// All errors are returned together: those of fields in form order, then the others.
	f.answer(`{"rating": 9, "text": "a", "nothing": 1, "`+apitest.MissingUUID+`": 2, "email": "x"}`).Want(422).
		Field("answers."+f.fields["text"], "answers."+f.fields["email"], "answers."+f.fields["rating"],
			"answers."+apitest.MissingUUID, "answers.nothing")

	f.answer(`{"` + strings.ToUpper(f.fields["text"]) + `": "abc"}`).Want(422)

	for body, field := range map[string]string{`{}`: "answers", `{"answers": null}`: "answers",
		`{"answers": []}`: "answers", `{"answers": "x"}`: "answers",
		`{"answers": {}, "partial": "yes"}`: "partial"} {
		f.Post(f.path+"/responses", body).Want(422).Field(field)
	}

	for _, body := range malformed {
		f.Post(f.path+"/responses", body).Want(400)
	}

	f.Post(f.path+"/responses", f.answers(`{"answers": {"text": "abc", "text": "abc"}}`)).Want(400)
	f.Post(f.path+"/responses", `{"answers": `+strings.Repeat("[", 400_000)+strings.Repeat("]", 400_000)+"}").Want(400)

	var many strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&many, `"%d": 1, `, i)
	}

	if r := f.answer("{" + many.String() + `"x": 1}`).Want(422); len(r.Metadata("fields").([]any)) > 100 ||
		len(r.Body) > 20_000 {
		t.Errorf("got %d bytes for many unknown fields", len(r.Body))
	}

	f.Post("/forms/garbage/responses", `{}`).Want(400)
	f.Post("/forms/"+apitest.MissingUUID+"/responses", `{}`).Want(404)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused response changed\n%s\ninto\n%s", before, after)
	}
}

func requiredAnswers(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a,
		`{"label": "name", "type": "text", "is_required": true}, {"label": "consent", "type": "checkbox", "is_required": true},
		{"label": "tags", "type": "multiselect", "options": "a,b", "is_required": true}, {"label": "cv", "type": "file"}`, "")
	all := []string{"answers." + f.fields["name"], "answers." + f.fields["consent"], "answers." + f.fields["tags"]}
	f.answer(`{}`).Want(422).Field(all...)
	f.answer(`{"name": "  ", "consent": false, "tags": []}`).Want(422).Field(all...)
	f.answer(`{"name": null, "consent": null, "tags": null}`).Want(422).Field(all...)
	f.answer(`{"name": "Ann", "consent": true, "tags": ["a"], "cv": "cv.pdf"}`).Want(422).
		Field("answers." + f.fields["cv"])

	f.answer(`{"name": "Ann", "consent": true, "tags": ["a"], "cv": null}`).Want(201)
}

// visitors checks that a form is open to callers with a key of its project, its link or a role
// in the project, and to no others.
func visitors(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")

	key := func(a *apitest.API, kind string) (id, key string) {
		r := a.Post("/projects/"+a.Project+"/keys", `{"name": "`+kind+`", "kind": "`+kind+`"}`).Want(201)
		return r.Get("uuid").(string), r.Metadata("key").(string)
	}
	keyID, publishable := key(a, "publishable")
	_, secret := key(a, "secret")
	_, foreign := key(a.WithProject(a.CreateProject("other")), "publishable")
	link := a.Post(f.path+"/link", "").Want(201).Get("link").(string)
	body := f.answers(`{"answers": {"name": "Ann"}}`)
	anonymous := a.Anonymous().WithProject("")
	send := func(headers ...string) *apitest.Reply {
		return anonymous.Send("POST", f.path+"/responses", body, headers...)
	}

	send("apikey: "+publishable, "Origin: https://example.com").Want(201)
	send("Authorization: Bearer " + publishable).Want(201)
	send("apikey: " + secret).Want(201)
	anonymous.Post(f.path+"/responses?link="+link, body).Want(201)
	send("apikey: "+foreign, "Authorization: Bearer "+a.Token).Want(201) // the member's token counts
	a.Member(5).Post(f.path+"/responses", body).Want(201)
	wantEqual(t, send("apikey: "+foreign).Want(401),
		anonymous.Send("POST", "/forms/"+apitest.MissingUUID+"/responses", body, "apikey: "+publishable).Want(401))

	send().Want(401)
	send("apikey: x").Want(401)
	send("Authorization: Bearer x").Want(401)
	send("Authorization: Basic x").Want(401)
	send("apikey: "+publishable, "Authorization: Bearer x").Want(401)
	anonymous.Post("/forms/"+apitest.MissingUUID+"/responses?link="+link, body).Want(401)
	anonymous.Send("POST", "/forms/garbage/responses", body, "apikey: "+publishable).Want(400)
	a.OtherUser().Post(f.path+"/responses", body).Want(404)

	// Visitors cannot read.
	for _, path := range []string{"", "/responses", "/responses/export", "/statistics", "/fields"} {
		anonymous.Send("GET", f.path+path+"?link="+link, "", "apikey: "+secret).Want(401)
	}

	a.Get(f.path+"").Want(200).Content("totalResponses", 6)

	a.Delete("/projects/" + a.Project + "/keys/" + keyID).Want(200)
	send("apikey: " + publishable).Want(401)
	anonymous.Send("GET", f.path+"/public", "", "apikey: "+secret).Want(200).Content("isOpen", true).
		Content("version", 2).
		Content("fields.0.uuid", f.fields["name"])

	anonymous.Send("GET", "/forms/garbage/public", "", "apikey: "+secret).Want(400)
	a.Put(f.path, `{"state": "closed"}`).Want(200)
	anonymous.Send("GET", f.path+"/public", "", "apikey: "+secret).Want(404).Code("form_closed")
	a.Get(f.path+"/public").Want(200).Content("isOpen", false)
}

// crossOrigin checks that pages of any origin can submit responses, and use no other operation.
func crossOrigin(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	for path, method := range map[string]string{
		"/responses": "POST", "/responses/" + apitest.MissingUUID: "PUT", "/public": "GET",
	} {
		r := a.Anonymous().Send("OPTIONS", f.path+path, "", "Origin: https://example.com",
			"Access-Control-Request-Method: "+method, "Access-Control-Request-Headers: apikey").Want(204)
		h := r.Header
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Methods") != method ||
			h.Get("Access-Control-Allow-Credentials") != "" ||
			!strings.Contains(h.Get("Access-Control-Allow-Headers"), "apikey") {
			t.Errorf("%s %s: got %v", method, path, h)
		}
	}

	if h := a.Anonymous().Send("GET", f.path+"/public", "", "Origin: https://example.com").
		Want(401).Header; h.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("a page cannot read the reason of the refusal: %v", h)
	}

	for _, path := range []string{"", "/responses", "/fields"} {
		if h := a.Send("GET", f.path+path, "", "Origin: https://example.com").
			Want(200).Header; h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("GET %s is readable from any origin", path)
		}
	}

	a.Send("OPTIONS", f.path, "").Want(405)
}

func closedForms(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	for settings, code := range map[string]string{
		`{"state": "draft"}`:  "form_closed",
		`{"state": "closed"}`: "form_closed",
		`{"state": "open", "opens_at": "2099-01-01T00:00:00Z", "closes_at": null}`: "form_closed",
		`{"state": "open", "opens_at": null, "closes_at": "2026-01-01T00:00:00Z"}`: "form_closed",
	} {
		f.Put(f.path, settings).Want(200)
		f.answer(`{"name": "Ann"}`).Want(409).Code(code)
		f.answer(`{"name": 5}`).Want(409).Code(code) // the state of the form is checked before the answers
		f.Post(f.path+"/responses", `{"answers": {}, "partial": true}`).Want(409).Code(code)
	}

	f.Put(f.path,
		`{"state": "open", "closes_at": "2099-01-01T00:00:00Z", "opens_at": "2026-01-01T00:00:00Z", "max_responses": 1}`).Want(200)
	f.answer(`{"name": "Ann"}`).Want(201)
	f.answer(`{"name": "Ben"}`).Want(409).Code("form_full")

	id := f.Get(f.path + "/responses").Want(200).Get("0.uuid").(string)
	f.Delete(f.path + "/responses/" + id).Want(200)
	f.answer(`{"name": "Ben"}`).Want(201) // below the maximum again
	f.Get(f.path).Want(200).Content("totalResponses", 1)
}

// maximumResponses checks that of fifty concurrent responses, partial ones included, exactly
// the maximum is accepted.
func maximumResponses(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, `"max_responses": 7`)

	var partials []*apitest.Reply
	for range 10 {
		partials = append(partials, f.Post(f.path+"/responses", `{"answers": {}, "partial": true}`).Want(201))
	}

	got := concurrently(50, func(i int) *apitest.Reply {
		if i < len(partials) {
			return f.Put(f.path+"/responses/"+partials[i].Get("uuid").(string),
				`{"token": "`+partials[i].Metadata("token").(string)+`"}`)
		}

		return f.answer(`{"name": "Ann"}`)
	})
	if got[200]+got[201] != 7 || got[409] != 43 {
		t.Errorf("got statuses %v, want 7 accepted and 43 refused", got)
	}

	f.Get(f.path).Want(200).Content("totalResponses", 7)

	if n := query[int](t, a, `select count(*) from forms.responses where form_uuid = $1 and state = 'complete'`,
		f.id()); n != 7 {
		t.Errorf("got %d responses, want 7", n)
	}
}

// closeDuringResponses checks that no response is added after a form is closed.
func closeDuringResponses(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	var shut *apitest.Reply
	got := concurrently(30, func(i int) *apitest.Reply {
		if i == 15 {
			shut = f.Put(f.path, `{"state": "closed"}`)
			return shut
		}

		return f.answer(`{"name": "Ann"}`)
	})

	wantStatuses(t, got, 200, 201, 409)
	f.Get(f.path).Want(200).Content("totalResponses", shut.Want(200).Get("totalResponses")).
		Content("totalResponses", got[201])
}

// responsesKeepDefinition checks that responses keep the labels and types of the definition
// that they answered.
func responsesKeepDefinition(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text"}, {"label": "age", "type": "number"}`, "")
	id := f.answer(`{"name": "Ann", "age": 7}`).Want(201).Get("uuid").(string)
	second := f.answer(`{"name": "Ben"}`).Want(201).Get("uuid").(string)
	before := f.Get(f.path+"/responses/"+id).Want(200).Content("version", 2)

	f.Put(f.path+"/fields/"+f.fields["name"], `{"label": "Choice", "type": "select", "options": "x,y"}`).Want(200)
	f.Delete(f.path + "/fields/" + f.fields["age"]).Want(200)
	wantEqual(t, f.Get(f.path+"/responses/"+id).Want(200), before)

	third := f.answer(`{"name": "x"}`).Want(201).Get("uuid").(string)
	f.answer(`{"name": "x", "age": 7}`).Want(422).Field("answers." + f.fields["age"])
	f.Get(f.path+"/responses/"+second).Want(200).Content("version", 2).Content("answers.0.label", "name").
		Content("answers.0.value", "Ben")
	f.Get(f.path+"/responses/"+third).Want(200).Content("version", 4).Content("answers.0.label", "Choice").
		Content("answers.0.type", "select")

	if n := query[int](t, a, `select count(*) from forms.definitions where form_uuid = $1`, f.id()); n != 2 {
		t.Errorf("got %d definitions, want the 2 with responses", n)
	}
}

// fieldChangesDuringResponses checks that each response is validated against the definition
// that it is stored with.
func fieldChangesDuringResponses(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "value", "type": "text"}`, "")
	got := concurrently(40, func(i int) *apitest.Reply {
		switch i % 8 {
		case 0:
			return f.Put(f.path+"/fields/"+f.fields["value"], `{"label": "value", "type": "number"}`)
		case 4:
			return f.Put(f.path+"/fields/"+f.fields["value"], `{"label": "value", "type": "text"}`)
		}

		return f.answer(`{"value": "7"}`)
	})

	wantCounts(t, got, map[int]int{200: 10, 201: 30})

	if n := query[int](t, a, `
		select count(*) from forms.responses r join forms.definitions d on d.form_uuid = r.form_uuid and d.version = r.version, jsonb_each(r.answers) v
		where jsonb_typeof(v.value) <> case d.fields #>> '{0,type}' when 'text' then 'string' else 'number' end and r.form_uuid = $1`, f.id()); n != 0 {
		t.Errorf("got %d responses that violate their definition", n)
	}
}

func honeypot(t *testing.T, a *apitest.API) {
	f := openSurvey(t, a, `{"label": "name", "type": "text", "is_required": true}`,
		`"honeypot": "website", "success_message": "Thank you"`)

	f.answer(`{"name": "Ann", "website": "https://example.com"}`).Want(201).Content("state", "complete").
		Content("successMessage", "Thank you")

	f.answer(`{"website": 1}`).Want(201) // errors are hidden from bots
	f.Post(f.path+"/responses", `{"answers": {"website": "x"}, "partial": true}`).Want(201).Content("state", "partial")

	if n := query[int](t, a, `select count(*) from forms.responses where form_uuid = $1`, f.id()); n != 0 {
		t.Errorf("got %d responses of bots, want none", n)
	}

	f.answer(`{"name": "Ann", "website": ""}`).Want(201)
	f.answer(`{"name": "Ann"}`).Want(201)
	f.Get(f.path).Want(200).Content("totalResponses", 2).Content("blockedResponses", 3)
	f.Put(f.path, `{"honeypot": null}`).Want(200)
	f.answer(`{"name": "Ann", "website": ""}`).Want(422).Field("answers.website")
}

// TestTooManyResponses checks the limit of responses per network.
func TestTooManyResponses(t *testing.T) {
	t.Parallel()

	a := apitest.New(t, limited)
	f := openSurvey(t, a, `{"label": "name", "type": "text"}`, "")
	got := map[int]int{}
	for range 7 { // all at once could overload the server, and repeated requests count too
		for status, n := range concurrently(10, func(int) *apitest.Reply { return f.answer(`{"name": "Ann"}`) }) {
			got[status] += n
		}
	}
	wantCounts(t, got, map[int]int{201: 60, 429: 10})

	r := f.Send("POST", f.path+"/responses", `{"answers": {}}`, "Origin: https://example.com").Want(429).
		Code("rate_limited")
	if r.Header.Get("Retry-After") == "" || r.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("got headers %v", r.Header)
	}

	f.Put(f.path+"/responses/"+apitest.MissingUUID, `{"token": "x"}`).Want(429)
}
