package httpx_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/socle-dev/socle/internal/httpx"
)

func TestWrongType(t *testing.T) {
	t.Parallel()

	type names struct {
		First string `json:"first_name"`
	}

	for body, want := range map[string]string{
		`{"first_name": 5}`:                         "first_name a string",
		`{"other": [1, {"ids": 1}], "ids": "x"}`:    "ids an array",
		`{"ids": ["x", {"a": [5]}]}`:                "ids/1 a string",
		`{"ids": [[]]}`:                             "ids/0 a string",
		`{"Size": 1.5}`:                             "Size an integer of 64 bits",
		`{"size": 99999999999999999999}`:            "size an integer of 64 bits",
		`{"size": {"size": 1}}`:                     "size an integer of 64 bits",
		`{"list": [{"first_name": []}, 5]}`:         "list/0/first_name a string",
		`{"list": [{"first_name": "x"}, 5]}`:        "list/1 an object",
		`{"id": 5}`:                                 "id a string",
		`{"on": "true", "size": "x"}`:               "on a boolean",
		`{"rate": true}`:                            "rate a number",
		`{ "on" : true , "rate" : "1" , "id":null}`: "rate a number",
		`[]`:         " an object",
		`{"size": 5`: " ",
		`{}`:         " ",
	} {
		var in struct {
			names
			IDs  []string `json:"ids"`
			Size int64
			List []names
			ID   *uuid.UUID
			On   *bool
			Rate float64
		}

		path, kind := httpx.WrongType([]byte(body), json.Unmarshal([]byte(body), &in))
		if got := path + " " + kind; got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
