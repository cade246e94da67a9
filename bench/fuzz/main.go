// Command fuzz sends random requests to every operation of the platform API, with valid, nearly
// valid and hostile values, and checks each response: declared status, no server error, in time,
// with an envelope, without internal details. It prints statistics and fails on any violation.
//
//	go run ./bench/fuzz [-requests 100000] [-seed 1] [-clients 4]
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/socle-dev/socle/internal/config"
	"github.com/socle-dev/socle/internal/server"
)

var (
	requests = flag.Int("requests", 100_000, "number of requests")
	seed     = flag.Uint64("seed", 1, "seed of the random values")
	clients  = flag.Int("clients", 4, "number of concurrent clients")
)

const maxLatency = 10 * time.Second

// internals matches internal details, forbidden in responses.
var internals = regexp.MustCompile(
	`(?i)sqlstate|syntax error at or near|goroutine|\.go:\d|socle_[0-9a-f]{12}|/tmp/|password_hash|argon2`,
)

// excluded are excluded operations. Some would end the run (the project, the session, the user's
// rights), one takes the project offline for a moment (a restore in place), and some return
// otherwise forbidden details by design.
var excluded = []string{"deleteProject", "pauseProject", "logout", "deleteSession", "deleteOtherSessions",
	"deleteAccount", "deleteUser", "updateStanding", "updateUser", "restoreBackup",
	"listEnvironment",       // shows the data folder to administrators
	"runSQL", "listQueries"} // show PostgreSQL's messages on a member's own SQL

// operation is an operation of the OpenAPI document.
type operation struct {
	ID           string `json:"operationId"`
	method, path string
	Parameters   []struct {
		Name, In string
		Schema   schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema schema }
	}
	Responses map[string]any
}

type schema struct {
	Type       any
	Ref        string `json:"$ref"`
	Format     string
	Enum       []any
	Properties map[string]schema
	Items      *schema
}

// fuzzer is the state used to generate requests.
type fuzzer struct {
	url, token, project string
	operations          []operation
	components          map[string]schema
	mu                  sync.Mutex
	known               map[string][]string // names and UUIDs from earlier responses
}

func main() {
	flag.Parse()

	dir, err := os.MkdirTemp("", "socle-fuzz-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	if err := run(dir); err != nil {
		os.RemoveAll(dir)
		log.Fatal(err)
	}
}

func run(dir string) error {
	c, err := config.Load([]string{
		"SOCLE_ADDR=127.0.0.1:0", "SOCLE_DATA_DIR=" + filepath.Join(dir, "data"), "SOCLE_RATE_LIMIT=off",
		"SOCLE_DRAIN=0s",
	}, nil)
	if err != nil {
		return err
	}

	s, err := server.Start(context.Background(), c, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Run(ctx) }()

	defer func() { stop(); <-stopped }()

	w, err := newFuzzer(s.URL)
	if err != nil {
		return err
	}

	return w.fuzz()
}

func newFuzzer(base string) (*fuzzer, error) {
	w := &fuzzer{url: base, known: map[string][]string{"schema": {"public"}}}

	var document struct {
		Paths      map[string]map[string]operation
		Components struct{ Schemas map[string]schema }
	}

	res, err := http.Get(base + "/openapi.json")
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()

	if err := json.NewDecoder(res.Body).Decode(&document); err != nil {
		return nil, err
	}

	w.components = document.Components.Schemas

	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(document.Paths[path])) {
			o := document.Paths[path][method]
			o.method, o.path = strings.ToUpper(method), path
			if !slices.Contains(excluded, o.ID) {
				w.operations = append(w.operations, o)
			}
		}
	}

	var user struct{ Metadata struct{ Token string } }
	if err := w.post("/users", `{"username": "fuzz", "email": "fuzz@example.com", "password": "correct horse battery"}`,
		&user); err != nil {
		return nil, err
	}

	w.token = user.Metadata.Token
	var project struct{ Content struct{ UUID string } }
	if err := w.post("/projects", `{"name": "fuzz"}`, &project); err != nil {
		return nil, err
	}

	w.project = project.Content.UUID
	w.known["projectUUID"] = []string{w.project}

	return w, nil
}

func (w *fuzzer) post(path, body string, into any) error {
	r, err := http.NewRequest("POST", w.url+path, strings.NewReader(body))
	if err != nil {
		return err
	}

	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.token)

	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()

	return json.NewDecoder(res.Body).Decode(into)
}

// fuzz sends the requests.
func (w *fuzzer) fuzz() error {
	statuses, complaints := map[string]int{}, map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	begun := time.Now()

	for c := range *clients {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(*seed, uint64(c)))

			client := &http.Client{Timeout: 3 * maxLatency, CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
				Transport: &http.Transport{MaxIdleConnsPerHost: 1}}

			for range *requests / *clients {
				o := w.operations[random.IntN(len(w.operations))]
				status, complaint := w.try(client, random, o)
				mu.Lock()
				statuses[status]++

				if complaint != "" {
					complaints[o.method+" "+o.path+": "+complaint]++
				}

				mu.Unlock()
			}
		})
	}

	wg.Wait()
	fmt.Printf("%d requests to %d operations in %s\n", *requests, len(w.operations),
		time.Since(begun).Round(time.Second))

	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		fmt.Printf("%s: %d\n", status, statuses[status])
	}

	for _, complaint := range slices.Sorted(maps.Keys(complaints)) {
		fmt.Printf("%d × %s\n", complaints[complaint], complaint)
	}

	if len(complaints) > 0 {
		return fmt.Errorf("%d kinds of invalid responses", len(complaints))
	}

	return nil
}

// try sends one request, and returns its status and a violation, "" for none.
func (w *fuzzer) try(client *http.Client, random *rand.Rand, o operation) (status, complaint string) {
	r := w.request(random, o)
	start := time.Now()

	res, err := client.Do(r)
	if err != nil {
		return "none", "no answer: " + err.Error()
	}
	defer res.Body.Close()

	body, err := io.ReadAll(res.Body)
	status = strconv.Itoa(res.StatusCode)
	_, declared := o.Responses[status]

	// because of its path or headers
	refusedEarly := res.StatusCode == 404 || res.StatusCode == 405 || res.StatusCode == 400 || res.StatusCode == 431
	switch {
	case err != nil:
		return status, "half an answer"
	case time.Since(start) > maxLatency:
		return status, "too slow"
	case res.StatusCode >= 500:
		return status, "status " + status + " " + string(body)
	case !declared && !refusedEarly:
		return status, "undeclared status " + status
	case internals.Match(body) && res.Header.Get("Content-Disposition") == "":
		return status, "shows the inside: " + internals.FindString(string(body))
	case strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") && !json.Valid(body):
		return status, "no JSON"
	}

	if res.StatusCode < 300 {
		w.recordNames(o, body)
	}

	return status, ""
}

// recordNames records the names of created entities for later requests.
func (w *fuzzer) recordNames(o operation, body []byte) {
	var reply struct{ Content struct{ UUID, Name string } }
	if o.method != "POST" || json.Unmarshal(body, &reply) != nil {
		return
	}

	keys := map[string]string{"/forms": "formUUID", "/forms/{formUUID}/fields": "fieldUUID",
		"/containers": "containerUUID", "/backups": "backupUUID", "/containers/{containerUUID}/files": "fileUUID",
		"/users": "userUUID"}

	w.mu.Lock()
	defer w.mu.Unlock()

	keep := func(name, value string) {
		if value != "" && len(w.known[name]) < 500 {
			w.known[name] = append(w.known[name], value)
		}
	}

	keep(keys[o.path], reply.Content.UUID)

	switch o.path {
	case "/tables":
		keep("fullTableName", reply.Content.Name)
		keep("tableUUID", reply.Content.Name)
	case "/functions/{schema}":
		keep("functionName", reply.Content.Name)
	}
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

func (w *fuzzer) request(random *rand.Rand, o operation) *http.Request {
	path := placeholder.ReplaceAllStringFunc(o.path, func(p string) string {
		return url.PathEscape(w.value(random, strings.Trim(p, "{}")))
	})

	query := url.Values{}
	for _, p := range o.Parameters {
		if p.In == "query" && random.IntN(4) == 0 {
			query.Add(p.Name, w.scalar(random, p.Name, p.Schema))
		}
	}

	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	var body io.Reader
	contentType := "application/json"
	if content, ok := o.RequestBody.Content["application/json"]; ok {
		text, _ := json.Marshal(w.member(random, "", content.Schema, 0)) // only scalars
		if random.IntN(50) == 0 {
			text = text[:random.IntN(len(text))]
		}

		body = bytes.NewReader(text)
	} else if _, ok := o.RequestBody.Content["multipart/form-data"]; ok {
		contentType = "multipart/form-data; boundary=b"

		body = strings.NewReader("--b\r\nContent-Disposition: form-data; name=\"full_file_name\"\r\n\r\n" +
			w.value(random, "full_file_name") +
			"\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n" +
			w.value(random, "file") + "\r\n--b--\r\n")
	}

	r, err := http.NewRequest(o.method, w.url+path, body)
	if err != nil {
		log.Fatal(err)
	}

	if body != nil {
		r.Header.Set("Content-Type", contentType)
	}
	if random.IntN(30) > 0 {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	if random.IntN(30) > 0 {
		r.Header.Set("X-Project", w.project)
	}

	return r
}

// value returns a text for a parameter: a known, new or hostile one.
func (w *fuzzer) value(random *rand.Rand, name string) string {
	switch random.IntN(6) {
	case 0:
		return hostileValues[random.IntN(len(hostileValues))]
	case 1:
		return "name_" + strconv.Itoa(random.IntN(100_000))
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if known := w.known[name]; len(known) > 0 {
		return known[random.IntN(len(known))]
	}

	return commonValues[random.IntN(len(commonValues))]
}

func (w *fuzzer) scalar(random *rand.Rand, name string, s schema) string {
	if len(s.Enum) > 0 && random.IntN(3) > 0 {
		return fmt.Sprint(s.Enum[random.IntN(len(s.Enum))])
	}
	if random.IntN(2) == 0 {
		return strconv.Itoa(random.IntN(200) - 10)
	}

	return w.value(random, name)
}

// member returns a value for a member of a body.
func (w *fuzzer) member(random *rand.Rand, name string, s schema, depth int) any {
	for s.Ref != "" {
		s = w.components[s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]]
	}

	if random.IntN(25) == 0 {
		return []any{
			nil, true, 1.5, -1, "", []any{}, map[string]any{}, json.Number("1e400"), json.Number("9223372036854775808"),
		}[random.IntN(9)]
	}

	kind := fmt.Sprint(s.Type)
	switch {
	case strings.Contains(kind, "object"):
		object := map[string]any{}
		for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
			if random.IntN(3) > 0 && member != "projectUUID" {
				object[member] = w.member(random, member, s.Properties[member], depth+1)
			}
		}

		return object
	case strings.Contains(kind, "array") && s.Items != nil:
		array := []any{}
		for range 1 + random.IntN(3) {
			array = append(array, w.member(random, name, *s.Items, depth+1))
		}

		return array
	case strings.Contains(kind, "integer"):
		return random.IntN(2000) - 100
	case strings.Contains(kind, "boolean"):
		return random.IntN(2) == 0
	case len(s.Enum) > 0:
		return s.Enum[random.IntN(len(s.Enum))]
	}

	if likely, ok := likelyValues[name]; ok && random.IntN(4) > 0 {
		return likely[random.IntN(len(likely))]
	}

	return w.value(random, name)
}
