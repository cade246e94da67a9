package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestEnums(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	asOwner(t, a, `create schema app; create type app."x""; drop type y; --" as enum ('a')`)
	a.Post("/enums", `{"name": "mood", "values": ["good", "it's \\ so", "bad"]}`).Want(201).Content("schema", "public").
		Content("values.1", `it's \ so`)
	a.Post("/enums", `{"name": "mood", "schema": "app", "values": ["good"]}`).Want(201).Content("schema", "app")
	a.Post("/enums/mood/values", `{"value": "best", "before": "good"}`).Want(201).Content("values.0", "best")
	a.Post("/enums/public.mood/values", `{"value": "fair", "after": "good"}`).Want(201).Content("values.2", "fair")
	a.Post("/enums/mood/values", `{"value": "worst"}`).Want(201).Content("values.5", "worst")
	a.Put("/enums/mood/values/worst", `{"value": "worse"}`).Want(200).Content("values.5", "worse")
	a.Put("/enums/mood/values/worse", `{"value": "worse"}`).Want(200)
	wantPages(t, a, "/enums", "name", []string{"name", "schema", "id"}, 3)
	a.CreateTable("orders", "mood mood")

	r := a.Delete("/enums/mood").Want(409).Code("in_use")
	if got := fmt.Sprint(r.Metadata("dependents")); got != "[map[kind:table column name:public.orders.mood]]" {
		t.Errorf("got %s", got)
	}

	a.Delete("/enums/app.mood").Want(200).Content("schema", "app")
	a.Delete("/enums/app.x%22;%20drop%20type%20y;%20--").Want(200)
	a.Delete("/enums/app.mood").Want(404)

	for body, field := range map[string]string{
		`{"values": ["a"]}`:                                            "name",
		`{"name": "x", "values": []}`:                                  "values",
		`{"name": "x", "values": [""]}`:                                "values.0",
		`{"name": "x", "values": ["a", 7]}`:                            "values.1",
		`{"name": "x", "values": ["a", "a"]}`:                          "values.1",
		`{"name": "x", "values": ["` + strings.Repeat("é", 32) + `"]}`: "values.0",
		`{"name": "x;y", "values": ["a"]}`:                             "name",
		`{"name": "x", "schema": "missing", "values": ["a"]}`:          "schema",
	} {
		a.Post("/enums", body).Want(422).Field(field)
	}

	a.Post("/enums", `{"name": "x", "schema": "auth", "values": ["a"]}`).Want(400).Code("reserved")
	a.Post("/enums", `{"name": "orders", "values": ["a"]}`).Want(409).Code("already_exists").Field("name")
	a.Post("/enums/mood/values", `{"value": "good"}`).Want(409).Field("value")
	a.Post("/enums/mood/values", `{"value": ""}`).Want(422).Field("value")
	a.Post("/enums/mood/values", `{"value": "x", "after": "nope"}`).Want(422).Field("after")
	a.Post("/enums/mood/values", `{"value": "x", "after": "good", "before": "bad"}`).Want(422).Field("after")
	a.Put("/enums/mood/values/good", `{"value": "bad"}`).Want(409).Field("value")
	a.Put("/enums/mood/values/good", `{"value": "`+strings.Repeat("x", 64)+`"}`).Want(422).Field("value")
	a.Put("/enums/mood/values/nope", `{"value": "x"}`).Want(404)

	for _, ref := range []string{"auth.mood", "pg_catalog.x", "information_schema.x"} {
		a.Post("/enums/"+ref+"/values", `{"value": 7}`).Want(400).Field("enum")
		a.Put("/enums/"+ref+"/values/x", `{"value": 7}`).Want(400).Field("enum")
		a.Delete("/enums/" + ref).Want(400).Field("enum")
	}

	a.Post("/enums/nope/values", `{"value": 7}`).Want(404)
}

func TestEnumsConcurrently(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	counts := concurrently(10, func(int) *apitest.Reply {
		return a.Post("/enums", `{"name": "mood", "values": ["good"]}`)
	})
	wantCounts(t, counts, map[int]int{201: 1, 409: 9})
	counts = concurrently(10, func(int) *apitest.Reply { return a.Post("/enums/mood/values", `{"value": "bad"}`) })
	wantCounts(t, counts, map[int]int{201: 1, 409: 9})
	counts = concurrently(10, func(i int) *apitest.Reply {
		return a.Put("/enums/mood/values/bad", fmt.Sprintf(`{"value": "bad%d"}`, i))
	})

	wantCounts(t, counts, map[int]int{200: 1, 404: 9})

	counts = concurrently(20, func(i int) *apitest.Reply {
		if i%2 == 0 {
			return a.Post("/enums/mood/values", fmt.Sprintf(`{"value": "v%d"}`, i))
		}
		return a.Delete("/enums/mood")
	})

	wantStatuses(t, counts, 200, 201, 404)

	if counts[200] != 1 {
		t.Errorf("got %v", counts)
	}
}
