package server_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/config"
)

// publicForm is an open form with a public link.
type publicForm struct {
	*apitest.API
	uuid, path string
	fields     map[string]string // UUIDs by label
}

// newForm creates an open form with a public link and these fields, each the members of a JSON
// object.
func newForm(t *testing.T, a *apitest.API, fields ...string) publicForm {
	t.Helper()

	f := publicForm{a, a.Create("/forms", `{"name": "Contact <us>", "description": "We answer\nsoon."}`), "",
		map[string]string{}}
	if len(fields) > 0 {
		a.Post("/forms/"+f.uuid+"/fields", `{"fields": [{`+strings.Join(fields, "}, {")+`}]}`).Want(201)
		for _, field := range a.Get("/forms/" + f.uuid + "/fields").Want(200).Get("").([]any) {
			m := field.(map[string]any)
			f.fields[m["label"].(string)] = m["uuid"].(string)
		}
	}

	f.path = a.Post("/forms/"+f.uuid+"/link", "").Want(201).Get("pagePath").(string)
	f.update(`{"state": "open"}`)

	return f
}

func (f publicForm) update(body string) *apitest.Reply {
	return f.Put("/forms/"+f.uuid, body).Want(200)
}

// answers returns the answers of the only response, by label.
func (f publicForm) answers(t *testing.T) map[string]any {
	t.Helper()

	r := f.Get("/forms/" + f.uuid + "/responses").Want(200).Total(1)
	found := map[string]any{}
	for _, answer := range r.Get("0.answers").([]any) {
		m := answer.(map[string]any)
		found[m["label"].(string)] = m["value"]
	}

	return found
}

// postHTML submits a form that is written on another site.
func (f publicForm) postHTML(v visitor, in url.Values) *apitest.Reply {
	return v.a.Send("POST", f.path, in.Encode(), "Content-Type: application/x-www-form-urlencoded",
		"Origin: https://site.example", "Sec-Fetch-Site: cross-site")
}

func TestFormPage(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a,
		`"label": "Your name", "type": "text", "is_required": true, "max_length": 20, "description": "First & last"`,
		`"label": "Mail", "type": "email"`, `"label": "Site", "type": "url"`, `"label": "Phone", "type": "phone"`,
		`"label": "Message", "type": "textarea"`, `"label": "Age", "type": "number", "min_value": 18`,
		`"label": "Stars", "type": "rating", "min_value": 1, "max_value": 5, "default_value": "4"`,
		`"label": "Many stars", "type": "rating", "min_value": 1, "max_value": 50`,
		`"label": "Day", "type": "date", "date_format": "DD.MM.YYYY", "start_date": "2026-01-01"`,
		`"label": "Hour", "type": "time"`, `"label": "Moment", "type": "datetime"`,
		`"label": "West", "type": "datetime", "default_value": "2026-01-01T10:00:00-05:00"`,
		`"label": "Color", "type": "radio", "options": "red,green"`,
		`"label": "Size", "type": "select", "options": "S,M,<L>"`,
		`"label": "Days", "type": "multiselect", "options": "Mon,Tue,Wed", "default_value": "[\"Tue\"]"`,
		`"label": "Terms", "type": "checkbox", "is_required": true`, `"label": "News", "type": "checkbox"`)

	v := visit(t, a)
	p := v.get(f.path).want(200, "Contact <us>", "We answer\nsoon.", "First & last", "(optional)")
	in := p.inputs()
	for label, want := range map[string]string{"Your name": "text", "Mail": "email", "Site": "url", "Phone": "tel",
		"Age": "number", "Stars": "radio", "Many stars": "number", "Day": "date", "Hour": "time",
		"Moment": "datetime-local", "West": "text", "Color": "radio", "Days": "checkbox", "Terms": "checkbox"} {
		if got := in[f.fields[label]]["type"]; got != want {
			t.Errorf("%s: got type %q, want %q", label, got, want)
		}
	}

	if strings.Contains(p.html, "<us>") || strings.Contains(p.html, "<L>") {
		t.Error("a text became markup")
	}
	if !strings.Contains(p.html, `value="4" checked`) || !strings.Contains(p.html, `value="Tue" checked`) {
		t.Error("the default values are not chosen")
	}

	values := url.Values{f.fields["Your name"]: {"A name that is far longer than twenty"},
		f.fields["Mail"]: {"nobody"}, f.fields["Age"]: {"17"}, f.fields["Day"]: {"2025-12-31"},
		f.fields["Size"]: {"XXL"}, f.fields["Color"]: {"green"}, f.fields["Days"]: {"Mon", "Wed"},
		f.fields["Message"]: {"one\r\ntwo"}}
	p = v.post(f.path, values).want(422, "Error: ", "Correct the marked fields.", "Must be one of the options.",
		"Is required.", "one\ntwo</textarea>", `value="green" checked`, `value="Mon" checked`, `value="Wed" checked`).
		field(f.fields["Your name"], "Must be at most 20 characters.").
		field(f.fields["Mail"], "Must be an e-mail address.").
		field(f.fields["Age"], "Must not be below 18.").field(f.fields["Day"], "Must not be before 01.01.2026.")
	if !strings.Contains(p.inputs()[f.fields["Your name"]]["tag"], "autofocus") {
		t.Error("the first invalid input has no focus")
	}
	if strings.Contains(p.html, `value="Tue" checked`) {
		t.Error("a default value came back")
	}
	a.Get("/forms/" + f.uuid + "/responses").Want(200).Total(0)

	for label, value := range map[string]string{"Your name": "Ada", "Mail": "ada@example.com", "Age": "36",
		"Stars": "5", "Day": "2026-11-23", "Hour": "10:30", "Moment": "2026-11-23T10:30", "Size": "<L>",
		"Terms": "true", "Site": "", "Phone": "", "Many stars": ""} {
		values.Set(f.fields[label], value)
	}

	r := v.a.Send("POST", f.path, values.Encode(), "Content-Type: application/x-www-form-urlencoded").Want(303)
	if got := r.Header.Get("Location"); got != f.path+"/done" {
		t.Errorf("got Location %q, want the page that follows", got)
	}

	want := map[string]any{"Your name": "Ada", "Mail": "ada@example.com", "Message": "one\ntwo", "Age": "36",
		"Stars": "5", "Day": "2026-11-23", "Hour": "10:30", "Moment": "2026-11-23T10:30", "Color": "green",
		"Size": "<L>", "Days": []any{"Mon", "Wed"}, "Terms": true}
	if got := f.answers(t); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}

	v.get(f.path+"/done").want(200, "Thank you.", `href="`+f.path+`"`)
	f.update(`{"success_message": "We call <you>."}`)
	v.get(f.path+"/done").want(200, "We call <you>.")
}

// TestHandWrittenForm posts by the names of fields, as a form on any site does.
func TestHandWrittenForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Your mail", "name": "email", "type": "email", "is_required": true`,
		`"label": "Text", "name": "message", "type": "textarea"`, `"label": "News", "name": "news", "type": "checkbox"`,
		`"label": "Topics", "name": "topics", "type": "multiselect", "options": "a,b"`)
	f.update(`{"honeypot": "website", "redirect_url": "https://site.example/thanks?x=1"}`)

	v := visit(t, a)
	policy := v.get(f.path).Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "form-action 'self' https://site.example;") {
		t.Errorf("got policy %q", policy)
	}

	r := f.postHTML(v, url.Values{"email": {"ada@example.com"}, "message": {"Hello"}, "news": {"off", "on"},
		"topics": {"a", "b"}, "website": {""}, "_next": {"https://evil.example"}}).Want(303)
	if got := r.Header.Get("Location"); got != "https://site.example/thanks?x=1" {
		t.Errorf("got Location %q", got)
	}

	want := map[string]any{"Your mail": "ada@example.com", "Text": "Hello", "News": true, "Topics": []any{"a", "b"}}
	if got := f.answers(t); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}

	// A machine is thanked, and nothing is kept.
	f.postHTML(v, url.Values{"email": {"bot@example.com"}, "website": {"spam"}}).Want(303)
	a.Get("/forms/"+f.uuid).Want(200).Content("totalResponses", 1).Content("blockedResponses", 1)

	// What the API refuses is refused here as well: the page of the form says why.
	v.show(f.postHTML(v, url.Values{"e-mail": {"ada@example.com"}})).
		want(422, "“e-mail” is not a field of the form.").field(f.fields["Your mail"], "Is required.")
	v.show(f.postHTML(v, url.Values{"email": {"a@example.com", "b@example.com"}})).
		want(422).field(f.fields["Your mail"], "Must be text.")
	v.show(f.postHTML(v, url.Values{"email": {"a@example.com"}, f.fields["Your mail"]: {"b@example.com"}})).
		want(422, "Is answered twice, by name and by UUID.")
	v.show(f.postHTML(v, url.Values{"email": {"a\x00b"}})).want(400, "without NUL")
	v.show(f.postHTML(v, url.Values{"message": {strings.Repeat("x", 1<<20)}})).want(413)
	v.show(f.postHTML(v, url.Values{"message": make([]string, 6000)})).want(413)
	v.show(v.a.Send("POST", f.path, `{"answers": {}}`)).want(400, "content type")
	v.show(v.a.Send("POST", f.path, "%zz", "Content-Type: application/x-www-form-urlencoded")).want(400)
	v.show(v.a.Send("POST", f.path, "email=x", "Content-Type: application/x-www-form-urlencoded; charset=latin1")).want(400)
	v.show(v.a.Send("POST", f.path, "x", "Content-Type: multipart/form-data")).want(400)
	v.show(v.a.Send("PUT", f.path, "")).want(405)
	v.show(v.a.Send("POST", f.path+"/done", "")).want(405)
	a.Get("/forms/" + f.uuid + "/responses").Want(200).Total(1)
}

// TestFormPageIsGone covers every reason why a page takes no responses.
func TestFormPageIsGone(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Name", "name": "name", "type": "text"`)
	v := visit(t, a)
	answer := url.Values{"name": {"Ada"}}

	for _, c := range [][2]string{
		{`{"state": "closed"}`, "The form is not open."},
		{`{"state": "open", "opens_at": "2999-01-01T00:00:00Z"}`, "The form is not open yet."},
		{`{"opens_at": null, "closes_at": "2000-01-01T00:00:00Z"}`, "The form is no longer open."},
	} {
		f.update(c[0])
		v.get(f.path).want(404, "Contact <us>", c[1])
		v.show(f.postHTML(v, answer)).want(409, c[1])
	}

	f.update(`{"state": "open", "opens_at": null, "closes_at": null, "max_responses": 1}`)
	f.postHTML(v, answer).Want(303)
	v.show(f.postHTML(v, answer)).want(409, "maximum number of responses")
	v.get(f.path+"/done").want(200, "Thank you.")
	f.update(`{"max_responses": null}`)

	old := f.path
	f.path = a.Post("/forms/"+f.uuid+"/link", "").Want(201).Get("pagePath").(string)
	v.get(f.path).want(200)
	for _, path := range []string{old, old + "/done", old + "/logo", "/f/x", "/f/" + strings.Repeat("x", 60),
		f.path[:len(f.path)-1], "/f/" + strings.Repeat("A", 22) + f.path[25:]} {
		v.get(path).want(404, "There is no such form")
	}
	for _, path := range []string{"/f/%00", "/f/%ff" + f.path[3:], f.path + "%00", f.path + "%ff/done"} {
		v.get(path).want(400, "The address is wrong")
	}

	a.Delete("/forms/"+f.uuid+"/link").Want(200).Content("pagePath", nil)
	v.get(f.path).want(404)
	f.path = a.Post("/forms/"+f.uuid+"/link", "").Want(201).Get("pagePath").(string)

	a.Post("/projects/"+a.Project+"/pause", "").Want(200)
	v.get(f.path).want(404, "There is no such form")
	a.Post("/projects/"+a.Project+"/resume", "").Want(200)
	v.get(f.path).want(200)
}

// TestUncheckedForm has settings and sizes that operations refuse, as in an imported backup.
func TestUncheckedForm(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Name", "name": "name", "type": "select", "options": "a,b"`)
	conn := a.ConnectProject()
	exec := func(sql string) {
		t.Helper()

		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}

	exec(`update forms.forms set color = 'red}body{display:none', redirect_url = 'javascript:alert(1)',
		embed_origins = array['https://a.example; script-src *', 'https://ok.example']`)
	v := visit(t, a)
	p := v.get(f.path).want(200)
	policy := p.Header.Get("Content-Security-Policy")
	if !strings.HasSuffix(policy, "frame-ancestors https://ok.example") ||
		!strings.Contains(policy, "form-action 'self';") || strings.Contains(p.html, "display:none") {
		t.Errorf("got policy %q and\n%s", policy, p.html)
	}
	if r := f.postHTML(v, url.Values{"name": {"a"}}).Want(303); r.Header.Get("Location") != f.path+"/done" {
		t.Errorf("got Location %q", r.Header.Get("Location"))
	}

	exec(`update forms.fields set options = (select json_agg(repeat('x', 200) || n) from generate_series(1, 6000) n)`)
	v.get(f.path).want(413, "The form can't be shown", "too large for a page")
	v.show(f.postHTML(v, url.Values{"name": {"a"}})).want(413)
}

func TestFormTheme(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a)
	v := visit(t, a)
	alone := v.get(f.path).want(200).Header.Get("Content-Security-Policy")
	if !strings.Contains(alone, "frame-ancestors 'none'") {
		t.Errorf("got policy %q", alone)
	}

	v.get(f.path + "/logo").want(404)

	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 2))); err != nil {
		t.Fatal(err)
	}

	container := a.Create("/containers", `{"name": "pictures"}`)
	upload := func(name, mediaType string, content []byte) string {
		t.Helper()

		body, media := multipartBody(t, nil, map[string][]byte{"file": content}, name, mediaType)
		r := a.Request("POST", "/containers/"+container+"/files", bytes.NewReader(body), "Content-Type: "+media)
		return a.Do(r).Want(201).Get("uuid").(string)
	}

	logo := upload("logo.png", "image/png", picture.Bytes())
	f.update(`{"color": "#FFDD00", "logo_uuid": "`+logo+`",
		"embed_origins": ["https://site.example", "http://localhost:3000"]}`).
		Content("color", "#ffdd00").Content("logoUuid", logo)

	p := v.get(f.path).want(200, `src="`+f.path+`/logo"`, ":root{--accent:#ffdd00;--on-accent:#000}")
	policy := p.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "frame-ancestors https://site.example http://localhost:3000") ||
		!strings.Contains(policy, "style-src 'self' 'sha256-") {
		t.Errorf("got policy %q", policy)
	}

	r := v.a.Get(f.path + "/logo").Want(200)
	if !bytes.Equal(r.Body, picture.Bytes()) || r.Header.Get("Content-Type") != "image/png" {
		t.Errorf("got a logo of %d bytes, %s", len(r.Body), r.Header.Get("Content-Type"))
	}
	v.a.Send("HEAD", f.path+"/logo", "").Want(200)

	page := upload("page.html", "text/html", []byte("<script>alert(1)</script>"))
	large := upload("large.png", "image/png", append(picture.Bytes(), make([]byte, 1<<20)...))
	for _, c := range [][2]string{
		{`{"logo_uuid": "` + page + `"}`, "logo_uuid"}, {`{"logo_uuid": "` + large + `"}`, "logo_uuid"},
		{`{"logo_uuid": "` + f.uuid + `"}`, "logo_uuid"}, {`{"logo_uuid": "x"}`, "logo_uuid"},
		{`{"color": "red"}`, "color"}, {`{"color": "#fff"}`, "color"}, {`{"color": "#ffffff}"}`, "color"},
		{`{"redirect_url": "javascript:alert(1)"}`, "redirect_url"}, {`{"redirect_url": "/thanks"}`, "redirect_url"},
		{`{"embed_origins": ["*"]}`, "embed_origins.0"},
		{`{"embed_origins": ["https://a.example/"]}`, "embed_origins.0"},
		{`{"embed_origins": ["https://a.example; script-src *"]}`, "embed_origins.0"},
		{`{"embed_origins": ["https://ok.example", "ftp://a.example"]}`, "embed_origins.1"},
		{`{"notify_emails": ["nobody"]}`, "notify_emails.0"},
		{`{"notify_emails": [` + strings.Repeat(`"a@example.com",`, 10) + `"b@example.com"]}`, "notify_emails"},
	} {
		f.Put("/forms/"+f.uuid, c[0]).Want(422).Field(c[1])
	}

	a.Delete("/containers/" + container + "/files/" + logo).Want(200)
	a.Get("/forms/"+f.uuid).Want(200).Content("logoUuid", nil)
	f.update(`{"color": null, "embed_origins": null}`).Content("color", nil)
	v.get(f.path).want(200)
}

// multipartBody returns a body with values and files, as a browser sends them.
func multipartBody(
	t *testing.T, values map[string]string, files map[string][]byte, name, mediaType string,
) (body []byte, contentType string) {
	t.Helper()

	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for field, content := range files { // before the values: the order is the browser's
		h := map[string][]string{"Content-Disposition": {fmt.Sprintf(`form-data; name=%q; filename=%q`, field, name)},
			"Content-Type": {mediaType}}
		part, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write(content); err != nil {
			t.Fatal(err)
		}
	}

	for field, value := range values {
		if err := w.WriteField(field, value); err != nil {
			t.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return b.Bytes(), w.FormDataContentType()
}

func TestFormFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Photo", "name": "photo", "type": "file"`,
		`"label": "Name", "name": "name", "type": "text", "is_required": true`)
	v := visit(t, a)
	v.get(f.path).want(200, `enctype="multipart/form-data"`)

	send := func(values map[string]string, files map[string][]byte, name string) *apitest.Reply {
		t.Helper()

		body, media := multipartBody(t, values, files, name, "image/png")
		return v.a.Do(v.a.Request("POST", f.path, bytes.NewReader(body), "Content-Type: "+media))
	}

	photo := map[string][]byte{"photo": []byte("bytes of a photo")}
	named := map[string]string{"name": "Ada"}
	v.show(send(named, photo, "me.png")).want(422, "Choose files again.").
		field(f.fields["Photo"], "Cannot be stored: the form accepts no files.")
	send(named, map[string][]byte{"photo": nil}, "").Want(303) // an empty input
	responses := "/forms/" + f.uuid + "/responses"
	a.Delete(responses + "/" + a.Get(responses).Want(200).Get("0.uuid").(string)).Want(200)

	container := a.Create("/containers", `{"name": "answers", "max_file_size": 1000}`)
	f.update(`{"container_uuid": "` + container + `"}`)

	v.show(send(nil, photo, "me.png")).want(422).field(f.fields["Name"], "Is required.")
	v.show(send(named, map[string][]byte{"photo": make([]byte, 2000)}, "me.png")).want(413).
		field(f.fields["Photo"], "Must be at most 1000 bytes.")
	v.show(send(named, photo, strings.Repeat("x", 2000))).want(422).
		field(f.fields["Photo"], "Has an invalid file name: with its folder it must be at most 1024 bytes.")
	a.Put("/containers/"+container, `{"allowed_mime_types": ["application/pdf"]}`).Want(200)
	v.show(send(named, photo, "me.png")).want(422).
		field(f.fields["Photo"], "Must be of one of these types: application/pdf.")
	a.Put("/containers/"+container, `{"allowed_mime_types": []}`).Want(200)
	v.show(send(named, map[string][]byte{"other": []byte("x")}, "me.png")).
		want(422, "“other” is not a file field of the form.")
	v.show(send(map[string]string{"name": strings.Repeat("x", 2<<20)}, photo, "me.png")).want(413)
	a.Get("/containers/" + container + "/files").Want(200).Total(0)

	body, media := multipartBody(t, named, photo, "me.png", "image/png")
	cut := v.a.Request("POST", f.path, bytes.NewReader(body[:len(body)-30]), "Content-Type: "+media)
	v.show(v.a.Do(cut)).want(400)

	send(named, photo, "me.png").Want(303)
	got := f.answers(t)
	if got["Name"] != "Ada" || got["Photo"].(map[string]any)["mimeType"] != "image/png" {
		t.Errorf("got %v", got)
	}
	a.Get("/containers/" + container + "/files").Want(200).Total(1)
}

// TestFormSentTwice sends the same page again, as a double click or a reload does.
func TestFormSentTwice(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Name", "name": "name", "type": "text"`,
		`"label": "Photo", "name": "photo", "type": "file"`)
	container := a.Create("/containers", `{"name": "answers"}`)
	f.update(`{"container_uuid": "` + container + `"}`)

	v := visit(t, a)
	sent := v.get(f.path)
	id := sent.inputs()["_response"]["value"]
	send := func(name string, files map[string][]byte) *apitest.Reply {
		t.Helper()

		values := map[string]string{"_response": id, f.fields["Name"]: name}
		body, media := multipartBody(t, values, files, "me.png", "image/png")

		return v.a.Do(v.a.Request("POST", f.path, bytes.NewReader(body), "Content-Type: "+media))
	}

	photo := map[string][]byte{"photo": []byte("bytes of a photo")}
	replies := make([]*apitest.Reply, 3)
	var clicks sync.WaitGroup
	for i := range replies {
		clicks.Go(func() { replies[i] = send("Ada", photo) })
	}
	clicks.Wait()

	for _, r := range replies {
		r.Want(303)
	}

	if got := f.answers(t); got["Name"] != "Ada" {
		t.Errorf("got %v", got)
	}
	if got := f.Get("/forms/" + f.uuid + "/responses").Want(200).Get("0.uuid"); got != id {
		t.Errorf("got the response %v, want %s", got, id)
	}
	a.Get("/containers/" + container + "/files").Want(200).Total(1)

	changed := v.show(send("Grace", photo)).want(409, "already sent from this page with other answers")
	if again := changed.inputs()["_response"]["value"]; again == id {
		t.Error("the page would repeat the response")
	} else {
		id = again
	}
	send("Grace", nil).Want(303)
	send("Grace", nil).Want(303)
	f.Get("/forms/" + f.uuid + "/responses").Want(200).Total(2)
}

// TestLastResponseSentTwice repeats the response by which a form is full.
func TestLastResponseSentTwice(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	f := newForm(t, a, `"label": "Name", "name": "name", "type": "text"`)
	f.update(`{"max_responses": 1}`)

	v := visit(t, a)
	first, second := v.get(f.path), v.get(f.path)
	for range 2 {
		f.postHTML(v, url.Values{"_response": {first.inputs()["_response"]["value"]}, "name": {"Ada"}}).Want(303)
	}

	v.show(f.postHTML(v, url.Values{"_response": {second.inputs()["_response"]["value"]}, "name": {"Ada"}})).
		want(409, "maximum number of responses")
}

func TestFormSubmissionsAreLimited(t *testing.T) {
	t.Parallel()

	a := apitest.New(t, func(c *config.Config) { c.RateLimit = true })
	f := newForm(t, a, `"label": "Name", "name": "name", "type": "text"`)
	v := visit(t, a)
	for range 60 {
		f.postHTML(v, url.Values{"name": {"Ada"}}).Want(303)
	}

	p := v.show(f.postHTML(v, url.Values{"name": {"Ada"}})).want(429, "Too many attempts")
	if p.Header.Get("Retry-After") == "" || p.inputs()[f.fields["Name"]]["value"] != "Ada" {
		t.Errorf("got Retry-After %q and\n%s", p.Header.Get("Retry-After"), p.html)
	}
	a.Post("/forms/"+f.uuid+"/responses", `{"answers": {}}`).Want(http.StatusTooManyRequests)
}
