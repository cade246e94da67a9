package api_test

import (
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// attachment returns a multipart part with a file for a field.
func attachment(field, name, contentType, content string) string {
	return part(`form-data; name="`+field+`"; filename="`+name+`"`, contentType, content)
}

// attach sends a response with files. Fields in answers are named by label.
func (f survey) attach(answers string, files ...string) *apitest.Reply {
	return f.sendParts(
		part(`form-data; name="answers"`, "application/json", f.answers(answers)) + strings.Join(files, "") + end,
	)
}

func (f survey) sendParts(body string) *apitest.Reply {
	return f.Send("POST", f.path+"/responses", body, "Content-Type: multipart/form-data; boundary="+boundary)
}

const applicationForm = `{"label": "name", "type": "text", "is_required": true}, {"label": "cv", "type": "file", "is_required": true}, {"label": "photo", "type": "file"}`

func TestResponseWithFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "applications"}`)
	f := openSurvey(t, a, applicationForm, `"container_uuid": "`+c+`", "success_message": "Thanks"`)
	cv, photo := f.fields["cv"], f.fields["photo"]
	r := f.attach(`{"name": "Ann"}`, attachment(cv, "cv.pdf", "application/pdf", "hello"),
		attachment(photo, "../é.png", "", "\x89PNG\r\n\x1a\n")).Want(201).
		Content("state", "complete").Content("successMessage", "Thanks")

	id := r.Get("uuid").(string)
	kept := f.Get(f.path+"/responses/"+id).Want(200).Content("answers.1.type", "file").
		Content("answers.1.value.size", 5).
		Content("answers.1.value.mimeType", "application/pdf").Content("answers.1.value.containerUuid", c).
		Content("answers.1.value.fullFileName", strings.TrimPrefix(f.path, "/forms/")+"/"+id+"/"+cv+"/cv.pdf").
		Content("answers.2.value.mimeType", "image/png")

	file := kept.Get("answers.1.value.fileUuid").(string)
	if got := f.Get("/containers/" + c + "/files/" + file + "/download").Want(200); string(got.Body) != "hello" {
		t.Errorf("got content %q", got.Body)
	}

	wantFiles(t, a, 2)

	if got := string(f.Get(f.path + "/responses/export").Want(200).Body); !strings.Contains(got, cv+"/cv.pdf") {
		t.Errorf("the export has no file name: %s", got)
	}

	// Browsers send an empty part for an empty file input.
	f.attach(`{"name": "Ann"}`, attachment(cv, "cv.pdf", "", "x"),
		attachment(photo, "", "application/octet-stream", "")).Want(201)

	wantFiles(t, a, 3)

	// Deletion of a response removes its files from the list at once, and their bytes afterwards.
	f.Delete(f.path + "/responses/" + id).Want(200)
	f.Get("/containers/" + c + "/files/" + file + "/download").Want(404)
	until(t, "the bytes are deleted", func() bool { return len(blobs(t, a)) == 1 })
	f.Delete(f.path + "?force=true").Want(200)

	if files := query[int](t, a, `select count(*) from storage.files`); files != 0 {
		t.Errorf("got %d files of a form, want none", files)
	}
}

// TestResponseWithFilesRefuses checks that a refused response leaves no file.
func TestResponseWithFilesRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "applications", "max_file_size": 10}`)
	f := openSurvey(t, a, applicationForm, `"container_uuid": "`+c+`", "honeypot": "web"`)
	cv, photo, name := f.fields["cv"], f.fields["photo"], f.fields["name"]
	good := attachment(cv, "cv.pdf", "", "hello")
	f.attach(`{"name": 5}`, good).Want(422).Field("answers." + name)
	f.attach(`{"name": "Ann"}`).Want(422).Field("answers." + cv)
	f.attach(`{"name": "Ann", "cv": "x"}`, good).Want(422).Field("answers." + cv)
	f.attach(`{"name": "Ann"}`, good, attachment(photo, "p.png", "", "12345678901")).Want(413).Field("answers." + photo)
	f.attach(`{"name": "Ann"}`, good, good).Want(422).Field("answers." + cv)
	f.attach(`{"name": "Ann"}`, good, attachment(name, "x", "", "x")).Want(422).Field("answers." + name)
	f.attach(`{"name": "Ann"}`, good, attachment(apitest.MissingUUID, "x", "", "x")).Want(422).
		Field("answers." + apitest.MissingUUID)
	f.attach(`{"name": "Ann"}`, good, attachment("photo", "x", "", "x")).Want(422).Field("answers.photo")
	f.attach(`{"name": "Ann"}`, good, attachment(photo, "", "", "x")).Want(422).Field("answers." + photo)

	for _, bad := range []string{"a\tb", "..", "\xff", strings.Repeat("a", 1024)} {
		f.attach(`{"name": "Ann"}`, good, attachment(photo, bad, "", "x")).Want(422).Field("answers." + photo)
	}

	for _, answers := range []string{`[]`, `null`, `"x"`, `5`} {
		f.attach(answers, good).Want(422).Field("answers")
	}

	f.attach(`{"name": "Ann"`, good).Want(400).Code("malformed_json")
	f.attach(`{"name": "Ann", "name": "Ann"}`, good).Want(400).Code("malformed_json")
	f.attach(`{"name": "`+strings.Repeat("a", 1<<20)+`"}`, good).Want(413)
	f.sendParts(good + part(`form-data; name="answers"`, "", `{}`) + end).Want(400).Field("answers")
	f.sendParts("").Want(400)

	// truncated
	f.sendParts(part(`form-data; name="answers"`, "", f.answers(`{"name": "Ann"}`)) + good).Want(400).
		Code("malformed_multipart")
	f.sendParts(part(`form-data; name="answers"`, "", f.answers(`{"name": "Ann"}`)) + good[:len(good)-4]).Want(400).
		Code("malformed_multipart")

	var many []string
	for range 30 {
		many = append(many, attachment(photo, "", "", ""))
	}

	f.attach(`{"name": "Ann"}`, many...).Want(400)
	f.Send("POST", f.path+"/responses", "x", "Content-Type: multipart/form-data").Want(400).Field("Content-Type")
	f.attach(`{"name": "Ann", "web": "x"}`, good).Want(201) // a bot's response: not stored
	f.Put(f.path, `{"state": "closed"}`).Want(200)
	f.attach(`{"name": "Ann"}`, good).Want(409).Code("form_closed")
	f.Put(f.path, `{"state": "open", "container_uuid": null}`).Want(200)
	f.attach(`{"name": "Ann"}`, good).Want(422).Code("no_container")
	wantFiles(t, a, 0)

	if n := query[int](t, a, `select count(*) from forms.responses`); n != 0 {
		t.Errorf("got %d refused responses, want none", n)
	}

	a.OtherUser().Send("POST", f.path+"/responses", "x", "Content-Type: multipart/form-data; boundary=x").Want(400)
}

// TestMaximumResponsesWithFiles checks that concurrent responses do not exceed the maximum, and
// that each stored one has exactly its own file.
func TestMaximumResponsesWithFiles(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "applications"}`)
	f := openSurvey(t, a, applicationForm, `"container_uuid": "`+c+`", "max_responses": 4`)
	got := concurrently(12, func(int) *apitest.Reply {
		return f.attach(`{"name": "Ann"}`, attachment(f.fields["cv"], "cv.pdf", "", "hello"))
	})

	wantCounts(t, got, map[int]int{201: 4, 409: 8})
	wantFiles(t, a, 4)
}
