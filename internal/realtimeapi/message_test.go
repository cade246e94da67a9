package realtimeapi

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/socle-dev/socle/internal/event"
	"github.com/socle-dev/socle/internal/realtime"
)

func TestDecodeText(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		s    serializer
		text string
		want string // join_ref ref topic event payload; "": malformed
	}{
		{lists, `["1","2","realtime:x","phx_join",{"a":1}]`, `"1" "2" realtime:x phx_join {"a":1}`},
		{lists, ` [null,null,"phoenix","heartbeat",{}] `, `  phoenix heartbeat {}`},
		{lists, `[1,-2,"t","e",null]`, `1 -2 t e `},
		{lists, `["1","2","t","e"]`, ``},
		{lists, `["1","2","t","e",{},{}]`, ``},
		{lists, `["1","2",null,"e",{}]`, ``},
		{lists, `["1","2","t",5,{}]`, ``},
		{lists, `[{},"2","t","e",{}]`, ``},
		{lists, `["1",[],"t","e",{}]`, ``},
		{lists, `["1",true,"t","e",{}]`, ``},
		{lists, `["1","` + strings.Repeat("x", 600) + `","t","e",{}]`, ``},
		{lists, `{"topic":"t","event":"e","payload":{},"ref":"1"}`, ``},
		{lists, `null`, ``}, {lists, `[]`, ``}, {lists, ``, ``}, {lists, `[`, ``},
		{lists, "[null,null,\"\xff\",\"e\",{}]", ``},
		{objects, `{"topic":"t","event":"e","payload":{},"ref":"1","join_ref":"2"}`, `"2" "1" t e {}`},
		{objects, `{"topic":"t","event":"e","payload":{},"ref":null}`, `  t e {}`},
		{objects, `{"topic":"t","event":"e"}`, `  t e `},
		{objects, `{"topic":"t","payload":{}}`, ``}, {objects, `{"event":"e"}`, ``},
		{objects, `{"topic":1,"event":"e"}`, ``},
		{objects, `["1","2","t","e",{}]`, ``}, {objects, `null`, ``}, {objects, `5`, ``}, {objects, `{`, ``},
	} {
		m, err := test.s.decodeText([]byte(test.text))
		got := strings.Join([]string{string(m.joinRef), string(m.ref), m.topic, m.event, string(m.payload)}, " ")
		if err != nil {
			got = ""
		}
		if got != test.want {
			t.Errorf("%s: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestEncodeText(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		s            serializer
		joinRef, ref string
		want         string
	}{
		{lists, `"1"`, `"2"`, `["1","2","realtime:\"x\"","e",{"a":1}]`},
		{lists, ``, ``, `[null,null,"realtime:\"x\"","e",{"a":1}]`},
		{objects, `"1"`, `"2"`, `{"topic":"realtime:\"x\"","event":"e","payload":{"a":1},"ref":"2","join_ref":"1"}`},
		{objects, ``, ``, `{"topic":"realtime:\"x\"","event":"e","payload":{"a":1},"ref":null,"join_ref":null}`},
	} {
		var joinRef, r ref
		if test.joinRef != "" {
			joinRef, r = ref(test.joinRef), ref(test.ref)
		}
		if got := string(test.s.encodeText(joinRef, r, `realtime:"x"`, "e", []byte(`{"a":1}`))); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
}

func TestDecodePush(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("t", 255)
	for _, test := range []struct {
		name, frame string
		want        string // join_ref ref topic event payload; "": malformed
		isBinary    bool
	}{
		{"JSON", "\x03\x01\x02\x0a\x03\x00\x01" + "1" + "23" + "realtime:x" + "cur" + `{"a":1}`,
			`"1" "23" realtime:x cur {"a":1}`, false},
		{"bytes", "\x03\x01\x01\x01\x01\x00\x00" + "12te" + "\x00\xff", "\"1\" \"2\" t e \x00\xff", true},
		{"no bytes", "\x03\x00\x00\x01\x00\x00\x00" + "t", "  t  ", true},
		{"metadata", "\x03\x01\x01\x01\x01\x02\x01" + "12te" + "{}" + "null", `"1" "2" t e null`, false},
		{"longest", "\x03\x00\x00\xff\xff\x00\x01" + long + long + "1", "  " + long + " " + long + " 1", false},
		{"Latin-1", "\x03\x00\x00\x01\x02\x00\x01" + "\xe9" + "é" + "1", "  é é 1", false},
		{"empty", "", "", false},
		{"kind only", "\x03", "", false},
		{"head cut", "\x03\x00\x00\x00\x00\x00", "", false},
		{"words cut", "\x03\x01\x01\x0a\x01\x00\x01" + "12te", "", false},
		{"server's kind", "\x04\x01\x01\x01\x01\x00\x01" + "12te" + "{}", "", false},
		{"push of Phoenix", "\x00\x01\x01\x01\x01" + "12te" + "{}", "", false},
		{"encoding", "\x03\x01\x01\x01\x01\x00\x02" + "12te" + "{}", "", false},
		{"no JSON", "\x03\x01\x01\x01\x01\x00\x01" + "12te", "", false},
		{"bad JSON", "\x03\x01\x01\x01\x01\x00\x01" + "12te" + "{", "", false},
		{"bad Unicode", "\x03\x01\x01\x01\x01\x00\x01" + "12te" + "\"\xff\"", "", false},
	} {
		m, err := decodePush([]byte(test.frame))
		got := ""
		if err == nil {
			got = strings.Join([]string{string(m.joinRef), string(m.ref), m.topic, m.broadcast.event,
				string(m.broadcast.payload)}, " ")
		}
		if got != test.want || (err == nil && m.broadcast.isBinary != test.isBinary) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestEncodeBroadcast(t *testing.T) {
	t.Parallel()

	got := string(encodeFrame("realtime:x", broadcast{event: "cur", payload: []byte(`{}`)}, nil))
	if want := "\x04\x0a\x03\x00\x01" + "realtime:x" + "cur" + "{}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = string(encodeFrame("t", broadcast{event: "", payload: []byte("\xff"), isBinary: true}, nil))
	if want := "\x04\x01\x00\x00\x00" + "t" + "\xff"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = string(encodeBroadcast("a\"b", []byte(`[1]`), nil))
	if want := `{"type":"broadcast","event":"a\"b","payload":[1]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}

	kept := &realtime.Message{ID: "i", Event: "e", Payload: []byte(`{}`)}
	got = string(lists.encodeBroadcast("t", kept, false))
	if want := "\x04\x01\x01\x0a\x01" + `te{"id":"i"}{}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = string(objects.encodeBroadcast("t", kept, true))
	if want := `{"topic":"t","event":"broadcast","payload":{"type":"broadcast","event":"e","payload":{},` +
		`"meta":{"id":"i","replayed":true}},"ref":null,"join_ref":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzFrames checks that no frame of a client makes the server panic, or send what other clients
// can't decode.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"\x03\x01\x02\x0a\x03\x00\x01" + "1" + "23" + "realtime:x" + "cur" + `{"a":1}`,
		"\x03\x01\x01\x01\x01\x00\x00" + "12te" + "\x00\xff",
		"\x03\xff\xff\xff\xff\xff\x01", "\x03", "", "\x04\x01\x01\x01\x01\x00\x01" + "12te" + "{}",
		`["1","2","realtime:x","phx_join",{"a":1}]`, `[null,null,"phoenix","heartbeat",{}]`,
		`{"topic":"t","event":"e","payload":{},"ref":"1","join_ref":"2"}`, "[null,null,\"\xff\",\"e\",{}]", `[[[[`,
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := decodePush(data); err == nil {
			b := m.broadcast
			if !utf8.ValidString(m.topic) || !utf8.ValidString(b.event) || (!b.isBinary && !json.Valid(b.payload)) {
				t.Errorf("%q: got %+v", data, m)
			}
			if len(m.topic) <= maxWord && len(b.event) <= maxWord &&
				!bytes.HasSuffix(encodeFrame(m.topic, *b, nil), b.payload) {
				t.Errorf("%q: the payload is lost", data)
			}
		}

		for _, s := range []serializer{objects, lists} {
			m, err := s.decodeText(data)
			if err != nil {
				continue
			}

			payload := m.payload
			if payload == nil {
				payload = []byte("null")
			}
			frame := s.encodeText(m.joinRef, m.ref, m.topic, m.event, payload)
			if again, err := s.decodeText(frame); err != nil || again.topic != m.topic || again.event != m.event {
				t.Errorf("%q: got %q after %q, %v", data, again.topic, frame, err)
			}
		}
	})
}

// TestEncodeUnreadableChange: a row that can't be encoded is left out, and ends nothing.
func TestEncodeUnreadableChange(t *testing.T) {
	t.Parallel()

	deep := strings.Repeat("[", 12_000) + strings.Repeat("]", 12_000)
	got := string(encodeChange(&event.Change{Type: event.Insert, Record: []byte(`{"a":` + deep + `}`), Cursor: "c1"}))
	if strings.Contains(got, "[[[") || !strings.Contains(got, `"cursor":"c1"`) || !strings.Contains(got, "413") {
		t.Errorf("got %.300s", got)
	}
}
