package operation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/account"
	"github.com/socle-dev/socle/internal/audit"
	"github.com/socle-dev/socle/internal/fault"
	"github.com/socle-dev/socle/internal/projectdb"
)

// noteInput is the input of the operations on notes.
type noteInput struct {
	ID    uuid.UUID `path:"id" format:"uuid"`
	Limit int       `query:"limit" minimum:"1" maximum:"10" default:"5"`
	Body  struct {
		Text string `json:"text" maxLength:"5"`
		ProjectInBody
	}
}

const notePath = "/notes/00000000-0000-0000-0000-000000000003"

// updateNote registers an update of a note.
func (f *fixture) updateNote(op Operation, run, exists func(*noteInput) error) {
	op.ID, op.Method, op.Path = "updateNote", http.MethodPut, "/notes/{id}"
	if op.Errors == nil {
		op.Errors = allErrors
	}
	if op.Access.identify == nil {
		op.Access = Project(account.Developer)
	}

	HandleInProject(f.Pipeline, op, func(_ context.Context, _ *projectdb.Project, in *noteInput) (string, error) {
		return fmt.Sprint(in.Body.Text, in.Limit), run(in)
	}, func(_ context.Context, _ *projectdb.Project, in *noteInput) error { return exists(in) })
}

func succeed(*noteInput) error { return nil }

// TestOrderOfStages checks that the first of several faults of a request is reported.
func TestOrderOfStages(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	missing := func(*noteInput) error { return fault.Missing() }
	f.updateNote(Operation{}, missing, missing)

	header := "X-Project: " + projectUUID.String()
	const invalidBody, unknownParam, noteFound = `{"text":"too long"}`, "?nope=1", `{"text":"x"}`

	f.as(account.Viewer)
	f.send("PUT", notePath+unknownParam, `{`, header, "Authorization: ").want(401, "invalid_token")
	f.send("PUT", notePath+unknownParam, `{`, header).want(400, "invalid_value").field("nope", "unknown")
	f.send("PUT", notePath, `{`, header).want(400, "malformed_json")
	f.send("PUT", notePath, invalidBody, header).want(403, "forbidden")

	f.as(account.Developer)
	f.send("PUT", notePath, invalidBody, header).want(404, "not_found")
	f.send("PUT", notePath, noteFound, header, "If-Match: x").want(400, "unknown").field("If-Match", "unknown")
	f.send("PUT", notePath, noteFound, header).want(404, "not_found")
}

func TestParametersAndBody(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.as(account.Developer)
	f.updateNote(Operation{}, succeed, succeed)

	header := "X-Project: " + projectUUID.String()
	if got := f.send("PUT", notePath, `{"text":"a"}`, header).want(200, "").Content; got != "a5" {
		t.Errorf("got %v, want the default of limit", got)
	}
	if got := f.send("PUT", notePath+"?limit=7", `{"text":"a"}`, header).want(200, "").Content; got != "a7" {
		t.Errorf("got %v, want limit 7", got)
	}

	for query, want := range map[string]string{
		"limit=0": "out_of_range", "limit=11": "out_of_range", "limit=x": "invalid_type",
		"limit=1&limit=2": "repeated", "limit=": "invalid_type", "limit=%ff": "invalid_format",
	} {
		f.send("PUT", notePath+"?"+query, `{"text":"a"}`, header).want(400, "invalid_value").field("limit", want)
	}

	f.send("PUT", "/notes/3", `{"text":"a"}`, header).want(400, "invalid_value").field("id", "invalid_format")
	f.send("PUT", notePath, `{"text":"a"}`, header, "X-Project: ").want(400, "invalid_value").
		field("X-Project", "required")
	f.send("PUT", notePath, `{"text":"a"}`, header, "X-Project: 7").want(400, "invalid_value").
		field("X-Project", "invalid_format")
	f.send("PUT", notePath+"?a=%zz", `{"text":"a"}`, header).want(400, "invalid_value").
		field("query", "invalid_format")

	f.send("PUT", notePath, `{}`, header).want(422, "invalid_value").field("text", "required")
	f.send("PUT", notePath, `[]`, header).want(400, "malformed_json")
	f.send("PUT", notePath, `{"text":"a","projectUUID":"`+projectUUID.String()+`"}`, header).want(200, "")
	f.send("PUT", notePath, `{"text":"a","projectUUID":"`+userUUID.String()+`"}`, header).want(422, "mismatch").
		field("projectUUID", "mismatch")
	f.send("PUT", notePath, `{"text":"a"}`, header, "Content-Type: text/plain").want(400, "unknown").
		field("Content-Type", "unknown")
	f.send("PUT", notePath, `{"text":"a"}`, header, "Content-Encoding: gzip").want(400, "unknown")
	f.send("PUT", notePath, `{"text":"`+strings.Repeat("a", maxBody)+`"}`, header).want(413, "too_large")
}

// TestListOf checks that one item is accepted in place of the list, under other spellings too, and
// that the names in a failure are without the list.
func TestListOf(t *testing.T) {
	t.Parallel()

	type itemsInput struct {
		Body struct {
			Items []struct {
				FullName string `json:"fullName" maxLength:"3"`
			} `json:"items"`
		}
	}

	f := newFixture(t)
	Handle(f.Pipeline, Operation{ID: "createItems", Method: "POST", Path: "/items", Access: SignedIn, Errors: allErrors,
		ListOf: "items", Aliases: map[string]string{"full_name": "fullName"}},
		func(_ context.Context, in *itemsInput) (string, error) { return in.Body.Items[0].FullName, nil }, nil)

	if got := f.send("POST", "/items", `{"full_name":"ann"}`).want(201, "").Content; got != "ann" {
		t.Errorf("got %v, want ann", got)
	}

	for _, both := range []string{`{"full_name":"ann","fullName":"ben"}`, `{"fullName":"ben","full_name":"ann"}`} {
		if got := f.send("POST", "/items", both).want(201, "").Content; got != "ben" {
			t.Errorf("%s: got %v, want ben", both, got)
		}
	}

	f.send("POST", "/items", `{"fullName":"four"}`).want(422, "invalid_value").field("fullName", "too_long")
	f.send("POST", "/items", `{"items":[{"fullName":"four"}]}`).want(422, "invalid_value").
		field("items.0.fullName", "too_long")
}

// TestStatuses checks that a failure has the first status of its kind that the operation declares.
func TestStatuses(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct {
		kind     fault.Kind
		declared []int
		want     int
	}{
		{fault.NotFound, []int{400, 404, 500}, 404},
		{fault.NotFound, []int{400, 500}, 400},
		{fault.Precondition, []int{400, 409, 422}, 409},
		{fault.Forbidden, []int{401}, 401},
		{fault.TooMany, []int{400}, 500},
		{fault.Internal, []int{400, 500}, 500},
	} {
		if got := statusOf(tt.kind, tt.declared); got != tt.want {
			t.Errorf("kind %v of %v: got %d, want %d", tt.kind, tt.declared, got, tt.want)
		}
	}

	f := newFixture(t)
	Handle(f.Pipeline, Operation{ID: "break", Method: "GET", Path: "/break", Access: Anonymous,
		Errors: []int{400, 500}},
		func(context.Context, *noInput) (string, error) { return "", errors.New("secret of the server") }, nil)

	if a := f.send("GET", "/break", "").want(500, "internal"); strings.Contains(a.Body.String(), "secret") {
		t.Errorf("an internal error is shown: %s", a.Body)
	}
}

func TestIdempotency(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.caller = account.Caller{User: userUUID}
	runs, failure := 0, error(nil)

	var keys []string
	Handle(f.Pipeline, Operation{ID: "createNote", Method: "POST", Path: "/notes", Access: SignedIn, Errors: allErrors},
		func(ctx context.Context, in *struct{ Body struct{ Text string } }) (int, error) {
			runs++
			keys = append(keys, audit.KeyOf(ctx))
			return runs, failure
		}, nil)

	send := func(body, key string) *answer {
		t.Helper()
		return f.send("POST", "/notes", body, "Idempotency-Key: "+key)
	}

	first := send(`{"Text":"a"}`, "one").want(201, "")
	repeated := send(`{ "Text" : "a" }`, "one").want(201, "")
	if got, want := repeated.Body.String(), first.Body.String(); got != want || runs != 1 ||
		repeated.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("got %s after %d runs, want %s", got, runs, want)
	}

	send(`{"Text":"b"}`, "one").want(409, "idempotency_key_reused")
	send(`{"Text":"a"}`, "two").want(201, "")
	send(`{"Text":"a"}`, strings.Repeat("k", maxKeyLength+1)).want(400, "invalid_format")

	f.caller.User = projectUUID // another user's keys are their own
	send(`{"Text":"b"}`, "one").want(201, "")

	failure = fault.New(fault.Conflict, "taken").WithCode("already_exists")
	send(`{"Text":"a"}`, "three").want(409, "already_exists")
	f.store.done[keys[len(keys)-1]] = true // the change of an earlier request, whose response was lost
	send(`{"Text":"a"}`, "three").want(409, "already_done")

	failure = nil
	send(`{"Text":"other"}`, "three").want(201, "") // a failed request can be corrected
}

func TestIfMatch(t *testing.T) {
	t.Parallel()

	type input struct {
		ID string `path:"id"`
	}

	f := newFixture(t)
	state, interruptions, runs := "a", 0, 0
	op := Operation{ID: "getThing", Method: "GET", Path: "/things/{id}", Access: SignedIn, Errors: allErrors}
	Handle(f.Pipeline, op, func(context.Context, *input) (string, error) { return state, nil }, nil)

	op.ID, op.Method = "deleteThing", "DELETE"
	Handle(f.Pipeline, op, func(context.Context, *input) (string, error) {
		if runs++; runs <= interruptions {
			return "", audit.ErrPositionChanged
		}
		return state, nil
	}, nil)

	op.ID, op.Path = "deleteOther", "/others/{id}"
	Handle(f.Pipeline, op, func(context.Context, *input) (string, error) { return "", nil }, nil)
	f.Complete()

	tag := f.send("GET", "/things/1", "").want(200, "").Header().Get("ETag")
	f.send("GET", "/things/1", "", "If-None-Match: W/"+tag).want(304, "")
	f.send("GET", "/things/1", "", `If-None-Match: "x"`).want(200, "")

	f.send("DELETE", "/things/1", "", `If-Match: "x"`).want(412, "changed").field("If-Match", "changed")
	f.send("DELETE", "/things/1", "", "If-Match: W/"+tag).want(412, "changed")
	f.send("DELETE", "/others/1", "", "If-Match: "+tag).want(400, "unknown")
	if runs != 0 {
		t.Errorf("refused requests ran %d times", runs)
	}

	interruptions = 3
	f.send("DELETE", "/things/1", "", `If-Match: "x", `+tag).want(200, "")
	if runs != interruptions+1 {
		t.Errorf("got %d runs, want %d", runs, interruptions+1)
	}

	runs, interruptions = 0, maxConditionalAttempts
	f.send("DELETE", "/things/1", "", "If-Match: "+tag).want(409, "busy")

	state = "b"
	f.send("DELETE", "/things/1", "", "If-Match: "+tag).want(412, "changed")
	f.send("DELETE", "/things/1", "", "If-Match: *").want(200, "")
}

func TestBackUpFirst(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	f.as(account.Developer)
	ran := 0
	f.updateNote(Operation{Destructive: When(func(in *noteInput) bool { return in.Body.Text == "drop" })},
		func(*noteInput) error { ran++; return nil }, succeed)

	send := func(text string) *answer {
		t.Helper()
		return f.send("PUT", notePath, `{"text":"`+text+`"}`, "X-Project: "+projectUUID.String())
	}

	send("drop").want(200, "") // the project does not require it
	f.caller.BackupFirst = true
	send("keep").want(200, "")
	if len(f.backups) != 0 {
		t.Errorf("harmless requests waited for backups: %q", f.backups)
	}

	send("drop").want(200, "")
	f.backup = fault.New(fault.Conflict, "later").WithCode("backup_under_way")
	send("drop").want(409, "backup_under_way")
	if len(f.backups) != 2 || ran != 3 {
		t.Errorf("got %d backups and %d runs, want 2 and 3", len(f.backups), ran)
	}
}

func TestBackupWait(t *testing.T) {
	t.Parallel()

	for header, want := range map[string]time.Duration{
		"": defaultBackupWait, "wait=5": 5 * time.Second, "return=minimal, wait=0": 0, "Wait=99": maxBackupWait,
		"wait=-1": defaultBackupWait, `wait="7"`: 7 * time.Second,
	} {
		if got := backupWaitOf(&http.Request{Header: http.Header{"Prefer": {header}}}); got != want {
			t.Errorf("%q: got %v, want %v", header, got, want)
		}
	}
}

// TestMisdeclared checks that a declaration that does not fit its input fails at start.
func TestMisdeclared(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	register := func(op Operation) bool {
		return panics(func() { f.updateNote(op, succeed, succeed) })
	}

	if !register(Operation{Body: RawFile}) || !register(Operation{Body: JSONWithFiles("text")}) {
		t.Error("a body that the input lacks is accepted")
	}
	if !register(Operation{Grows: When(func(*noInput) bool { return true })}) {
		t.Error("a condition on another input is accepted")
	}
	if !panics(func() {
		Handle(f.Pipeline, Operation{ID: "a", Method: "PUT", Path: "/a", Access: SignedIn},
			func(context.Context, *struct{ Upload }) (string, error) { return "", nil }, nil)
	}) {
		t.Error("an input with a file is accepted without a declared body")
	}
	if register(Operation{Grows: Always}) {
		t.Error("a complete declaration panics")
	}
}

// TestUploadForms checks what the handler reads of each kind of body.
func TestUploadForms(t *testing.T) {
	t.Parallel()

	f := newFixture(t)
	for path, body := range map[string]Body{
		"/multipart": MultipartFile, "/raw": RawFile, "/types": FileOfTypes("a text or a form", "text/plain"),
	} {
		Handle(f.Pipeline, Operation{ID: "put" + path[1:], Method: "PUT", Path: path, Access: SignedIn,
			Errors: allErrors, Body: body}, func(_ context.Context, in *struct{ Upload }) (string, error) {
			name, media, err := in.Open()
			if err != nil {
				return "", err
			}

			content, err := io.ReadAll(in)
			return name + "|" + media + "|" + string(content), err
		}, nil)
	}

	var form strings.Builder
	w := multipart.NewWriter(&form)
	_ = w.WriteField("full_file_name", "a/b.txt")
	part, err := w.CreateFormFile("file", "b.txt")
	if err != nil {
		t.Fatal(err)
	}

	_, _ = io.WriteString(part, "hello")
	_ = w.Close()

	formType := "Content-Type: " + w.FormDataContentType()
	for _, tt := range []struct{ path, header, body, want string }{
		{"/multipart", formType, form.String(), "a/b.txt|application/octet-stream|hello"},
		{"/types", formType, form.String(), "a/b.txt|application/octet-stream|hello"},
		{"/types", "Content-Type: Text/Plain; charset=x", "hello", "|text/plain|hello"},
		{"/raw", "Content-Type: text/plain; a=b", "hello", "|text/plain; a=b|hello"},
		{"/raw", "Content-Type: application/x-www-form-urlencoded", "hello", "||hello"},
	} {
		if got := f.send("PUT", tt.path, tt.body, tt.header).want(200, "").Content; got != tt.want {
			t.Errorf("%s %s: got %v, want %s", tt.path, tt.header, got, tt.want)
		}
	}

	f.send("PUT", "/multipart", "hello", "Content-Type: text/plain").want(400, "unknown")
	f.send("PUT", "/types", "hello", "Content-Type: text/html").want(400, "unknown")
	f.send("PUT", "/raw", form.String(), formType).want(400, "unknown")
	f.send("PUT", "/raw", "hello", "Content-Range: bytes 0-4/9").want(400, "not_applicable")
	f.send("PUT", "/multipart", form.String()[:form.Len()-4], formType).want(400, "malformed_multipart")
}
