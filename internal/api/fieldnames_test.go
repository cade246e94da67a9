package api_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestFieldNames(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := openSurvey(t, a, `{"label": "Mail", "name": "email", "type": "email", "is_required": true},
		{"label": "Text", "name": "Text-2_b", "type": "text"}, {"label": "Plain", "type": "text"}`, `"honeypot": "website"`)

	fields := f.path + "/fields"
	name := func(r *apitest.Reply, want any) {
		t.Helper()

		if got := r.Want(200).Metadata("name"); got != want {
			t.Errorf("got name %v, want %v", got, want)
		}
	}

	name(a.Get(fields+"/"+f.fields["Mail"]), "email")
	name(a.Get(fields+"/"+f.fields["Plain"]), nil)

	if got := a.Get(fields).Want(200).Metadata("names." + f.fields["Mail"]); got != "email" {
		t.Errorf("listed with name %v, want email", got)
	}

	for _, invalid := range []string{"2x", "_x", "a b", "ä", "x\n", "a23456789012345678901234567890123456789012345678901",
		"abcdef01-0000-4000-8000-000000000000"} {
		a.Post(fields, `{"label": "x", "type": "text", "name": `+quoted(invalid)+`}`).Want(422).Field("name")
	}

	a.Post(fields, `{"label": "x", "type": "text", "name": "email"}`).Want(422).Field("name").Code("already_exists")
	a.Post(fields, `{"fields": [{"label": "x", "type": "text", "name": "one"}, {"label": "y", "type": "text", "name": "one"}]}`).
		Want(422).Field("fields.1.name")
	a.Post(fields, `{"label": "x", "type": "text", "name": "website"}`).Want(422).Field("name")
	a.Put(fields+"/"+f.fields["Plain"], `{"label": "Plain", "type": "text", "name": "email"}`).Want(422).Field("name")
	a.Put(fields+"/"+f.fields["Plain"], `{"label": "Plain", "type": "text", "name": "website"}`).Want(422).Field("name")
	a.Put(f.path, `{"honeypot": "email"}`).Want(422).Field("honeypot")
	name(a.Put(fields+"/"+f.fields["Plain"], `{"label": "Plain", "type": "textarea", "name": "plain"}`), "plain")

	// Answers by name, by UUID, and mixed; errors name the fields as the client did.
	post := func(body string) *apitest.Reply { return a.Post(f.path+"/responses", `{"answers": `+body+`}`) }
	id := post(`{"email": "ann@example.com", "` + f.fields["Text"] + `": "x", "plain": "a\nb"}`).Want(201).
		Get("uuid").(string)
	a.Get(f.path+"/responses/"+id).Want(200).Content("answers.0.fieldUuid", f.fields["Mail"]).
		Content("answers.1.value", "x").Content("answers.2.value", "a\nb")
	post(`{"email": "nobody", "Text-2_b": 5}`).Want(422).Field("answers.email", "answers.Text-2_b")
	post(`{"email": "ann@example.com", "` + f.fields["Mail"] + `": "bob@example.com"}`).Want(422).Field("answers.email")
	post(`{"Email": "ann@example.com"}`).Want(422).Field("answers."+f.fields["Mail"], "answers.Email")

	// Partial responses as well.
	partial := a.Post(f.path+"/responses", `{"answers": {"Text-2_b": "x"}, "partial": true}`).Want(201)
	path := f.path + "/responses/" + partial.Get("uuid").(string)
	token := quoted(partial.Metadata("token").(string))
	a.Post(f.path+"/responses", `{"answers": {"Text-2_b": true}, "partial": true}`).Want(422).Field("answers.Text-2_b")
	a.Put(path, `{"token": `+token+`, "answers": {"email": "ann@example.com", "Text-2_b": null}}`).Want(200).
		Content("state", "complete")
	complete := a.Get(path).Want(200).Content("answers.0.value", "ann@example.com")
	if got := complete.Get("answers").([]any); len(got) != 1 {
		t.Errorf("got answers %v, want 1", got)
	}

	// A name that was given later stands for earlier responses too, and one that is gone for none.
	name(a.Put(fields+"/"+f.fields["Plain"], `{"label": "Plain", "type": "text", "name": null}`), nil)
	post(`{"email": "ann@example.com", "plain": "x"}`).Want(422).Field("answers.plain")
}
