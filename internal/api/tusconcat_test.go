package api_test

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
	"github.com/socle-dev/socle/internal/blob/blobtest"
)

// partialTus creates a partial upload and returns its path.
func partialTus(t *testing.T, a *apitest.API, container, content string) string {
	t.Helper()

	u := strings.TrimPrefix(
		tus(a, "POST", "/containers/"+container+"/tus", "", "Upload-Concat: partial",
			"Upload-Length: "+strconv.Itoa(len(content))).Want(201).Header.Get("Location"), a.URL,
	)

	if content != "" {
		wantOffset(t, patchTus(a, u, 0, content), 204, len(content))
	}

	return u
}

// finalTus concatenates partial uploads to a file.
func finalTus(a *apitest.API, container, metadata string, partial ...string) *apitest.Reply {
	headers := []string{"Upload-Concat: final;" + strings.Join(partial, " ")}
	if metadata != "" {
		headers = append(headers, "Upload-Metadata: "+metadata)
	}

	return tus(a, "POST", "/containers/"+container+"/tus", "", headers...)
}

func fileNamed(name string) string {
	return "filename " + base64.StdEncoding.EncodeToString([]byte(name))
}

// TestTusConcatenation creates a file from uploads that can arrive in parallel.
func TestTusConcatenation(t *testing.T) {
	t.Parallel()

	for _, place := range []string{"folder", "S3"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()

			var a *apitest.API
			var stored func() int
			if place == "S3" {
				service := blobtest.New(t)
				a, stored = apitest.New(t, service.Configure), storedCounter(t, service.Dir)
			} else {
				a = apitest.Shared(t)
				stored = storedCounter(t, a.BlobDir())
			}

			c := a.Create("/containers", `{"name": "reports"}`)
			first, empty, last := partialTus(t, a, c, "hello"), partialTus(t, a, c, ""), partialTus(t, a, c, "world")
			middle := partialTus(t, a, c, ", ")
			for _, u := range []string{first, empty} {
				if h := tus(a, "HEAD", u, "").Want(200).Header; h.Get("Upload-Concat") != "partial" ||
					h.Get("Upload-Offset") != h.Get("Upload-Length") {
					t.Errorf("got %v", h)
				}
			}

			if n := query[int](t, a, "select count(*) from storage.files"); n != 0 {
				t.Errorf("got %d files, want none", n)
			}

			created := finalTus(a, c, fileNamed("a/ü.txt")+",filetype dGV4dC9wbGFpbg==", a.URL+first, empty, middle,
				a.URL+last).Want(201)
			u := strings.TrimPrefix(created.Header.Get("Location"), a.URL)

			if got := a.Get(address(a, c, "a/ü.txt")).Want(200); string(got.Body) != "hello, world" ||
				got.Header.Get("Content-Type") != "text/plain" {
				t.Errorf("got %q, %v", got.Body, got.Header)
			}

			h := tus(a, "HEAD", u, "").Want(200).Header
			if h.Get("Upload-Concat") != "final;"+strings.Join([]string{a.URL + first, empty, middle, a.URL + last},
				" ") || h.Get("Upload-Offset") != "12" || h.Get("Upload-Length") != "12" {
				t.Errorf("got %v", h)
			}

			patchTus(a, u, 12, "!").Want(403).Code("final_upload")
			tus(a, "HEAD", first, "").Want(404)
			finalTus(a, c, fileNamed("b"), first, last).Want(400).Code("unknown_upload")
			finalTus(a, c, fileNamed("b"), partialTus(t, a, c, "")).Want(201)
			checkCounts(t, a)
			until(t, "the parts are deleted", func() bool { return stored() == 2 })
		})
	}
}

// TestTusConcatenationRefuses checks that a concatenated file follows the rules of all files.
func TestTusConcatenationRefuses(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "reports", "max_file_size": 10, "allowed_mime_types": ["text/plain"]}`)
	other := a.Create("/containers", `{"name": "other"}`)
	put(a, c, "taken", "x").Want(200)

	path := "/containers/" + c + "/tus"
	hello, name := partialTus(t, a, c, "hello"), fileNamed("a")
	for said, code := range map[string]string{"whole": "invalid_format", "final": "invalid_format",
		"final;": "required", "final;" + hello + "x": "unknown_upload", "final;/garbage": "unknown_upload",
		"final;" + hello + " " + hello:                           "unknown_upload",
		"final;/containers/" + c + "/tus/" + apitest.MissingUUID: "unknown_upload",
		"final;" + partialTus(t, a, other, "x"):                  "unknown_upload",
		"final;" + newTus(t, a, c, "no part", 1):                 "unknown_upload"} {
		r := tus(a, "POST", path, "", "Upload-Concat: "+said, "Upload-Metadata: "+name)
		if said == "whole" || said == "final" {
			r = tus(a, "POST", path, "", "Upload-Concat: "+said, "Upload-Length: 1", "Upload-Metadata: "+name)
		}

		r.Want(400).Field("Upload-Concat").Code(code)
	}

	tus(a, "POST", path, "", "Upload-Concat: final;"+hello, "Upload-Length: 5", "Upload-Metadata: "+name).Want(400).
		Field("Upload-Length")
	tus(a, "POST", path, "", "Upload-Concat: partial").Want(400).Field("Upload-Length")
	tus(a, "POST", path, "", "Upload-Concat: partial", "Upload-Length: 11").Want(413)

	half := newTus(t, a, c, "ignored", 5, "Upload-Concat: partial")
	wantOffset(t, patchTus(a, half, 0, "he"), 204, 2)
	finalTus(a, c, name, hello, half).Want(400).Code("unfinished_upload")

	deferred := strings.TrimPrefix(tus(a, "POST", path, "", "Upload-Concat: partial", "Upload-Defer-Length: 1").
		Want(201).Header.Get("Location"), a.URL)
	finalTus(a, c, name, hello, deferred).Want(400).Code("unfinished_upload")
	wantOffset(t, tus(a, "PATCH", deferred, "worlds", "Upload-Offset: 0", "Upload-Length: 6"), 204, 6)
	finalTus(a, c, name, hello, deferred).Want(413).Code("too_large")
	finalTus(a, c, "", hello).Want(422).Field("full_file_name")
	finalTus(a, c, fileNamed("../a"), hello).Want(422)
	finalTus(a, c, fileNamed("taken"), hello).Want(409)
	finalTus(a, c, name+",filetype aW1hZ2UvcG5n", hello).Want(422).Code("mime_type_not_allowed")

	for _, caller := range []struct {
		api    *apitest.API
		status int
	}{{a.Anonymous(), 401}, {a.OtherUser(), 401}, {a.Member(5), 403}} {
		finalTus(caller.api, c, name, hello).Want(caller.status)
	}

	// The refused requests changed nothing: the uploads still have their bytes. One of several
	// concurrent concatenations succeeds, and a part for a used upload is refused.
	wantOffset(t, tus(a, "HEAD", hello, ""), 200, 5)
	wantCounts(t, concurrently(8, func(i int) *apitest.Reply {
		return finalTus(a, c, fileNamed(strconv.Itoa(i)), hello)
	}),
		map[int]int{201: 1, 400: 7})

	patchTus(a, hello, 5, "x").Want(404)

	// The bytes of partial uploads count once.
	execute(t, a, "delete from storage.resumable_uploads; update storage.usage set max_bytes = bytes + 8")
	u := partialTus(t, a, c, "hello")
	tus(a, "POST", path, "", "Upload-Concat: partial", "Upload-Length: 4").Want(413).Code("quota_exceeded")
	finalTus(a, c, name, u, partialTus(t, a, c, "you")).Want(201)

	// Unused partial uploads expire like all others.
	execute(t, a, "update storage.usage set max_bytes = null")
	u = partialTus(t, a, c, "left")
	execute(t, a, "update storage.resumable_uploads set expires_at = now()")
	tus(a, "HEAD", u, "").Want(404)
	finalTus(a, c, fileNamed("left"), u).Want(400).Code("unknown_upload")
}
