package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// createForm creates a form with a field.
func createForm(a *apitest.API, field string) (id, path string) {
	id = a.Create("/forms", `{"name": "Survey"}`)
	return id, "/forms/" + id + "/fields/" + a.Create("/forms/"+id+"/fields", field)
}

func TestUpdateField(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id, path := createForm(a,
		`{"label": "Name", "type": "text", "description": "Yours", "is_required": true, "default_value": "Ann",
		"pattern": "[A-Z].*", "min_length": 1, "max_length": 9}`)

	a = a.WithProject("") // form paths need no X-Project

	r := a.Put(path, `{"label": "Full name", "type": "text"}`).Want(200).Content("formUuid", id).
		Content("label", "Full name").Content("type", "text").
		Content("description", "Yours").Content("isRequired", true).Content("defaultValue", "Ann").
		Content("pattern", "[A-Z].*").
		Content("minLength", 1).Content("maxLength", 9).Content("options", nil).Content("minValue", nil).
		Content("maxValue", nil).
		Content("dateFormat", nil).Content("startDate", nil).Content("endDate", nil)
	if r.Get("updatedAt").(string) <= r.Get("createdAt").(string) {
		t.Errorf("updatedAt is unchanged\n%s", r.Body)
	}

	a.Put(path,
		`{"label": "Name", "type": "text", "default_value": null, "pattern": "", "min_length": null, "description": null, "is_required": false,
		"uuid": "`+apitest.MissingUUID+`", "formUuid": "`+apitest.MissingUUID+
			`", "createdAt": "x", "maxLength": 1, "IsRequired": true}`).Want(200).
		Content("defaultValue", nil).Content("pattern", nil).Content("minLength", nil).Content("description", nil).
		Content("isRequired", false).
		Content("maxLength", 9).Content("formUuid", id)

	a.Put(
		path,
		`{"label": "Age", "type": "number", "min_value": 0, "max_value": 9223372036854775807, "default_value": "18"}`,
	).Want(200).
		Content("type", "number").Content("minValue", 0).Content("maxValue", "9223372036854775807").
		Content("maxLength", nil)

	a.Put(path, `{"label": "Colour", "type": "select", "options": "red, green ,blue", "default_value": "red"}`).
		Want(200).
		Content("options", `["red","green","blue"]`).Content("minValue", nil)
	a.Put(path, `{"label": "Colour", "type": "multiselect", "options": "[\"a,b\", \"c\"]", "default_value": "c"}`).
		Want(200).Content("options", `["a,b","c"]`)

	a.Put(
		path,
		`{"label": "When", "type": "date", "date_format": "DD.MM.YYYY", "start_date": "01.02.2026", "end_date": "2026-03-01"}`,
	).Want(200).
		Content("startDate", "2026-02-01").Content("endDate", "2026-03-01").Content("options", nil).
		Content("dateFormat", "DD.MM.YYYY")

	a.Put(path, `{"label": "`+strings.Repeat("é", 100)+`", "type": "rating", "min_value": 1, "max_value": 5}`).Want(200)

	for _, kind := range []string{
		"text", "textarea", "number", "email", "url", "phone", "date", "time", "datetime", "checkbox", "rating", "file",
	} {
		a.Put(path, `{"label": "Any", "type": "`+kind+`"}`).Want(200).Content("type", kind)
	}
}

// fieldFaults maps invalid bodies to the fields at fault.
var fieldFaults = map[string]string{
	`{"type": "text"}`:                                                            "label",
	`{"label": "", "type": "text"}`:                                               "label",
	`{"label": "   ", "type": "text"}`:                                            "label",
	`{"label": null, "type": "text"}`:                                             "label",
	`{"label": 7, "type": "text"}`:                                                "label",
	`{"label": "a\u0000", "type": "text"}`:                                        "label",
	`{"label": "a\nb", "type": "text"}`:                                           "label",
	`{"label": "a"}`:                                                              "type",
	`{"label": "a", "type": ""}`:                                                  "type",
	`{"label": "a", "type": "string"}`:                                            "type",
	`{"label": "a", "type": "TEXT"}`:                                              "type",
	`{"label": "a", "type": ["text"]}`:                                            "type",
	`{"label": "a", "type": "text", "is_required": "yes"}`:                        "is_required",
	`{"label": "a", "type": "text", "is_required": 1}`:                            "is_required",
	`{"label": "a", "type": "text", "is_required": null}`:                         "is_required",
	`{"label": "a", "type": "text", "description": {}}`:                           "description",
	`{"label": "a", "type": "text", "min_value": 1}`:                              "min_value",
	`{"label": "a", "type": "text", "max_value": 1}`:                              "max_value",
	`{"label": "a", "type": "text", "options": "a,b"}`:                            "options",
	`{"label": "a", "type": "text", "date_format": "YYYY-MM-DD"}`:                 "date_format",
	`{"label": "a", "type": "text", "start_date": "2026-01-01"}`:                  "start_date",
	`{"label": "a", "type": "text", "end_date": "2026-01-01"}`:                    "end_date",
	`{"label": "a", "type": "number", "pattern": ".*"}`:                           "pattern",
	`{"label": "a", "type": "number", "min_length": 1}`:                           "min_length",
	`{"label": "a", "type": "number", "max_length": 1}`:                           "max_length",
	`{"label": "a", "type": "date", "options": "a"}`:                              "options",
	`{"label": "a", "type": "checkbox", "default_value": "maybe"}`:                "default_value",
	`{"label": "a", "type": "file", "default_value": "a.txt"}`:                    "default_value",
	`{"label": "a", "type": "text", "min_length": 5, "max_length": 4}`:            "min_length",
	`{"label": "a", "type": "text", "min_length": -1}`:                            "min_length",
	`{"label": "a", "type": "text", "min_length": 1.5}`:                           "min_length",
	`{"label": "a", "type": "text", "min_length": 1e2}`:                           "min_length",
	`{"label": "a", "type": "text", "min_length": "5"}`:                           "min_length",
	`{"label": "a", "type": "text", "max_length": 9223372036854775808}`:           "max_length",
	`{"label": "a", "type": "text", "max_length": 1e400}`:                         "max_length",
	`{"label": "a", "type": "number", "min_value": 5, "max_value": 4}`:            "min_value",
	`{"label": "a", "type": "number", "min_value": 5, "default_value": "4"}`:      "default_value",
	`{"label": "a", "type": "number", "default_value": "many"}`:                   "default_value",
	`{"label": "a", "type": "rating", "default_value": "1.5"}`:                    "default_value",
	`{"label": "a", "type": "text", "max_length": 2, "default_value": "abc"}`:     "default_value",
	`{"label": "a", "type": "text", "pattern": "[0-9]+", "default_value": "abc"}`: "default_value",
	`{"label": "a", "type": "email", "default_value": "nobody"}`:                  "default_value",
	`{"label": "a", "type": "url", "default_value": "javascript:alert(1)"}`:       "default_value",
	`{"label": "a", "type": "text", "pattern": "("}`:                              "pattern",
	`{"label": "a", "type": "text", "pattern": "(?=a)"}`:                          "pattern",
	`{"label": "a", "type": "text", "pattern": "(a)\\1"}`:                         "pattern",
	`{"label": "a", "type": "text", "pattern": "(?:a{1000}){1000}"}`:              "pattern",
	`{"label": "a", "type": "text", "pattern": "` + strings.Repeat("a", 1<<19) +
		`"}`: "pattern",
	`{"label": "a", "type": "text", "pattern": "` + strings.Repeat("(", 1000) +
		`"}`: "pattern",
	`{"label": "a", "type": "select"}`:                      "options",
	`{"label": "a", "type": "radio", "options": ""}`:        "options",
	`{"label": "a", "type": "select", "options": "[]"}`:     "options",
	`{"label": "a", "type": "select", "options": "[1]"}`:    "options",
	`{"label": "a", "type": "select", "options": "[\"a\""}`: "options",
	`{"label": "a", "type": "select", "options": "a,a"}`:    "options",
	`{"label": "a", "type": "select", "options": "a,,b"}`:   "options",
	`{"label": "a", "type": "select", "options": ["a"]}`:    "options",
	`{"label": "a", "type": "select", "options": "` + strings.TrimSuffix(strings.Repeat("a,", 100_000), ",") +
		`"}`: "options",
	`{"label": "a", "type": "select", "options": "a,b", "default_value": "c"}`:                "default_value",
	`{"label": "a", "type": "date", "start_date": "2026-02-30"}`:                              "start_date",
	`{"label": "a", "type": "date", "start_date": "tomorrow"}`:                                "start_date",
	`{"label": "a", "type": "date", "date_format": "nonsense"}`:                               "date_format",
	`{"label": "a", "type": "date", "start_date": "2026-02-02", "end_date": "2026-02-01"}`:    "start_date",
	`{"label": "a", "type": "date", "end_date": "2026-02-01", "default_value": "2026-02-02"}`: "default_value",
	`{"label": "a", "type": "time", "start_date": "2026-02-02"}`:                              "start_date",
	`{"label": "` + strings.Repeat("é", 101) +
		`", "type": "text"}`: "label",
	`{"label": "a", "type": "text", "description": "` + strings.Repeat("é", 501) +
		`"}`: "description",
	`{"label": "a", "type": "text", "projectUUID": "` + apitest.MissingUUID +
		`"}`: "projectUUID",
	`{"label": "", "type": "number", "min_length": 1, "options": "a"}`: "options min_length label",
}

func TestUpdateFieldRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	id, path := createForm(a, `{"label": "Name", "type": "text"}`)
	before := databaseState(t, a)

	for body, fields := range fieldFaults {
		r := a.Put(path, body)
		if r.Status != 422 {
			t.Errorf("%.100s: got %d, want 422\n%s", body, r.Status, r.Body)
			continue
		}

		r.Field(strings.Fields(fields)...)
	}

	a.Put(path, `{}`).Want(422).Field("label", "type")

	for _, body := range malformed {
		a.Put(path, body).Want(400)
	}

	for _, path := range []string{
		"/forms/" + id + "/fields/garbage", "/forms/garbage/fields/" + apitest.MissingUUID,
		"/forms/" + id + "/fields/%00",
	} {
		a.Put(path, `{}`).Want(400)
	}

	for _, path := range []string{
		"/forms/" + id + "/fields/" + apitest.MissingUUID,
		"/forms/" + apitest.MissingUUID + "/fields/" + apitest.MissingUUID,
		"/forms/" + strings.TrimPrefix(path, "/forms/"+id+"/fields/") + "/fields/" + id,
	} {
		a.Put(path, `{}`).Want(400).Code("not_found")
	}

	a.Anonymous().Put(path, `{`).Want(401)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}

	// Matched by RE2 in linear time.
	a.Put(path, `{"label": "a", "type": "text", "pattern": "(a+)+$"}`).Want(200)
}

// TestFieldText checks that special characters in text are returned byte for byte.
func TestFieldText(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	_, path := createForm(a, `{"label": "Name", "type": "text"}`)
	for _, text := range []string{
		"'; drop table forms.fields; --", `"quoted"`, `\`, "😀 𝒳", "a\u200bb", "\u202eabc", "\ufeffabc", "{{7*7}}",
		"<img src=x onerror=alert(1)>", "%s %d %n", "null",
	} {
		a.Put(path, `{"label": `+quoted(text)+`, "type": "text", "description": `+quoted(text)+`, "default_value": `+
			quoted(text)+`}`).Want(200).
			Content("label", text).Content("description", text).Content("defaultValue", text)
	}
}

func TestUpdateFieldConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	_, path := createForm(a, `{"label": "Age", "type": "number", "min_value": 0, "max_value": 10}`)
	counts := concurrently(10, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return a.Put(path, `{"label": "Age", "type": "number", "min_value": 8}`)
		}
		return a.Put(path, `{"label": "Age", "type": "number", "max_value": 5}`)
	})

	wantStatuses(t, counts, 200, 422)

	if counts[200] != 5 {
		t.Errorf("got statuses %v: the two limits contradict each other in any order", counts)
	}
}

func TestCreateForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.Post("/forms", `{"name": "Survey", "description": "Yearly"}`).Want(201).Content("projectUuid", a.Project).
		Content("name", "Survey").
		Content("description", "Yearly").Content("createdBy", a.User).Content("updatedBy", a.User)
	a.Post("/forms", `{"name": "Survey"}`).Want(201).Content("description", nil)
	before := databaseState(t, a)

	for body, field := range map[string]string{
		`{}`: "name", `{"name": ""}`: "name", `{"name": " "}`: "name",
		`{"name": 1}`: "name", `{"name": "a\nb"}`: "name",
		`{"name": "` + strings.Repeat("a", 101) + `"}`:                     "name",
		`{"name": "a", "description": "` + strings.Repeat("a", 501) + `"}`: "description",
		`{"name": "a", "description": 1}`:                                  "description",
	} {
		a.Post("/forms", body).Want(422).Field(field)
	}

	a.Post("/forms", `nope`).Want(400)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}

func TestCreateField(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/forms/" + a.Create("/forms", `{"name": "Survey"}`) + "/fields"
	r := a.Post(path, `{"label": "Name", "type": "text"}`).Want(201).Content("label", "Name").
		Content("isRequired", false)
	if got := len(r.Metadata("fields").([]any)); got != 1 {
		t.Errorf("metadata.fields has %d fields, want 1", got)
	}

	r = a.Post(path,
		`{"fields": [{"label": "One", "type": "number"}, {"label": "Two", "type": "select", "options": "a,b"}]}`).
		Want(201).Content("label", "One")
	if r.Metadata("fields.1.label") != "Two" {
		t.Errorf("got %s", r.Body)
	}

	before := databaseState(t, a)

	for body, fields := range fieldFaults {
		r := a.Post(path, body)
		if r.Status != 422 {
			t.Errorf("%.100s: got %d, want 422\n%s", body, r.Status, r.Body)
			continue
		}

		r.Field(strings.Fields(fields)...)
	}

	for body, field := range map[string]string{
		`{"fields": []}`: "fields", `{"fields": {}}`: "fields",
		`{"fields": null}`: "fields", `{"fields": [7]}`: "fields.0",
		`{"fields": [{"label": "a", "type": "text"}, {"label": "b", "type": "nope"}]}`: "fields.1.type",
		`{"fields": [{"label": "a", "type": "text"}, {"label": "b"}]}`:                 "fields.1.type",
		`{"fields": [` + strings.Repeat(`{"label": "a", "type": "text"},`, 100) +
			`{"label": "a", "type": "text"}]}`: "fields",
	} {
		a.Post(path, body).Want(422).Field(field)
	}

	a.Post(path, `[`).Want(400)
	a.Post("/forms/"+apitest.MissingUUID+"/fields", `{"label": ""}`).Want(404).Code("not_found")
	a.Post("/forms/garbage/fields", `{"label": ""}`).Want(400).Field("formUUID")
	a.OtherUser().Post(path, `{"label": "a", "type": "text"}`).Want(404)
	a.Anonymous().Post(path, `{`).Want(401)

	if after := databaseState(t, a); after != before {
		t.Errorf("a refused request changed\n%s\ninto\n%s", before, after)
	}
}
