package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestS3Keys(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/s3-keys"

	created := a.Post(path, `{"name": " rclone "}`).Want(201).Content("name", "rclone").Content("projectUuid",
		a.Project)
	id, secret := created.Get("uuid").(string), created.Metadata("secretAccessKey").(string)
	if created.Get("accessKeyId") != strings.ReplaceAll(id, "-", "") || len(secret) != 43 {
		t.Errorf("got %s", created.Body)
	}
	if created.Header.Get("Cache-Control") != "no-store" {
		t.Error("the response with the secret can be stored by caches")
	}
	if list := a.Get(path+"?sort=name").Want(200).Content("0.name", "rclone"); strings.Contains(string(list.Body),
		secret) {
		t.Errorf("the list shows the secret: %s", list.Body)
	}

	for _, body := range []string{`{}`, `{"name": ""}`, `{"name": "  "}`, `{"name": "` + strings.Repeat("x", 101) +
		`"}`} {
		a.Post(path, body).Want(422).Field("name")
	}
	a.Post(path, `{"name": "Rclone"}`).Want(409).Field("name")
	a.Post(path, `{`).Want(400)
	a.Get(path + "?sort=secret").Want(400).Field("sort")
	a.Delete(path + "/x").Want(400)

	a.Delete(path+"/"+id).Want(200).Content("name", "rclone")
	a.Delete(path + "/" + id).Want(404)

	a.Exec(`insert into platform.s3_keys (uuid, project_uuid, name, created_by)
		select gen_random_uuid(), $1, 'key ' || n, $1 from generate_series(1, 99) n`, a.Project)
	wantCounts(t, concurrently(5, func(i int) *apitest.Reply {
		return a.Post(path, fmt.Sprintf(`{"name": "late %d"}`, i))
	}), map[int]int{201: 1, 422: 4})
	a.Post(path, `{"name": "one more"}`).Want(422).Code("quota_exceeded")
}
