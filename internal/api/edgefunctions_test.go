package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// TestEdgeFunctions deploys, calls, changes and deletes a function.
func TestEdgeFunctions(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	project := "/projects/" + a.Project
	path := project + "/edge-functions"
	answer := func() string {
		res, err := http.Get(a.URL + project + "/functions/v1/hello")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()

		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}

		return fmt.Sprint(res.StatusCode, " ", string(body))
	}

	first := a.Put(path+"/hello", `{"code": "Deno.serve(() => new Response('one'));", "verify_jwt": false}`).Want(200).
		Content("name", "hello").Content("verifyJwt", false)
	if got := answer(); got != "200 one" {
		t.Errorf("got %s", got)
	}

	a.Put(path+"/hello", `{"code": "Deno.serve(() => { console.log('called'); return new Response('two'); });"}`).
		Want(200).Content("verifyJwt", false)
	if got := answer(); got != "200 two" {
		t.Errorf("after the second deployment: got %s", got)
	}

	a.Put(path+"/hello", `{"code": "Deno.serve("}`).Want(422).Code("boot_error")
	a.Put(path+"/hello", `{"code": ""}`).Want(422).Field("code")
	a.Put(path+"/-a", `{"code": "x"}`).Want(422).Field("name")
	a.Put(path+"/"+strings.Repeat("a", 64), `{"code": "x"}`).Want(400)

	if versions := a.Get(path + "/hello/versions").Want(200); len(values(versions, "version")) != 2 {
		t.Errorf("got the versions %s", versions.Body)
	}
	a.Get(path + "/other/versions").Want(404)
	a.Get(path + "/hello/versions?sort=code").Want(400)

	version, _ := first.Get("version").(string)
	a.Put(path+"/hello/settings", `{"version": "`+version+`"}`).Want(200).Content("version", version)
	if got := answer(); got != "200 one" {
		t.Errorf("after the rollback: got %s", got)
	}
	a.Put(path+"/hello/settings", `{"version": "`+strings.Repeat("0", 64)+`"}`).Want(422).Field("version")
	a.Put(path+"/other/settings", `{"verify_jwt": true}`).Want(404)
	a.Put(path+"/"+strings.Repeat("a", 64)+"/settings", `{"verify_jwt": true}`).Want(400)

	until(t, "the log has what the function wrote", func() bool {
		return strings.Contains(string(a.Get(project+"/edge-function-log?function=hello").Want(200).Body), `"called"`)
	})
	a.Get(project + "/edge-function-log?sort=message").Want(400)

	if got := fmt.Sprint(values(a.Get(path).Want(200), "name")); got != "[hello]" {
		t.Errorf("got the functions %s", got)
	}
	a.Get(path + "?sort=code").Want(400)

	a.Delete(path + "/hello").Want(200)
	a.Delete(path + "/hello").Want(404)
	a.Delete(path + "/" + strings.Repeat("a", 64)).Want(400)
	if got := answer(); !strings.HasPrefix(got, "404") {
		t.Errorf("after the deletion: got %s", got)
	}
}

// TestEdgeFunctionSecrets sets and deletes secrets, which no answer has.
func TestEdgeFunctionSecrets(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	path := "/projects/" + a.Project + "/edge-function-secrets"

	set := a.Put(path+"/KEY", `{"value": "s3cret"}`).Want(200).Content("name", "KEY")
	a.Put(path+"/KEY", `{"value": "s3cret of two"}`).Want(200)
	a.Put(path+"/SUPABASE_URL", `{"value": "x"}`).Want(422).Field("name")
	a.Put(path+"/A", `{}`).Want(422).Field("value")
	a.Put(path+"/"+strings.Repeat("A", 256), `{"value": "x"}`).Want(400)

	list := a.Get(path).Want(200)
	if got := fmt.Sprint(values(list, "name")); got != "[KEY]" {
		t.Errorf("got the secrets %s", got)
	}
	a.Get(path + "?sort=value").Want(400)
	for _, r := range []*apitest.Reply{set, list, a.Get("/projects/" + a.Project + "/audit").Want(200)} {
		if strings.Contains(string(r.Body), "s3cret") {
			t.Errorf("an answer has the secret: %s", r.Body)
		}
	}

	a.Delete(path + "/KEY").Want(200)
	a.Delete(path + "/KEY").Want(404)
	a.Delete(path + "/" + strings.Repeat("A", 256)).Want(400)
}

// TestEdgeFunctionLimits changes limits, which hold from the next call on.
func TestEdgeFunctionLimits(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	administrator := a.Administrator()
	project := "/projects/" + a.Project
	path := project + "/edge-function-limits"
	a.Get(path).Want(200).Content("memoryMb", 256).Content("bodyMb", 20).Content("mailPorts", false)

	a.Put(project+"/edge-functions/size",
		`{"code": "Deno.serve(async (r) => new Response((await r.bytes()).length));", "verify_jwt": false}`).Want(200)
	status := func() int {
		res, err := http.Post(a.URL+project+"/functions/v1/size", "", strings.NewReader(strings.Repeat("x", 2<<20)))
		if err != nil {
			return 0 // the server closes the connection
		}
		defer res.Body.Close()

		return res.StatusCode
	}
	if got := status(); got != 200 {
		t.Errorf("before: got %d", got)
	}

	administrator.Put(path, `{"body_mb": 1, "memory_mb": 320}`).Want(200).Content("bodyMb", 1).Content("memoryMb", 320)
	administrator.Put(path, `{"concurrency": 2, "mail_ports": true}`).Want(200).Content("bodyMb", 1).
		Content("concurrency", 2)
	a.Get(path).Want(200).Content("bodyMb", 1).Content("cpuMilliseconds", 2000).Content("mailPorts", true)
	if got := status(); got == 200 {
		t.Error("a body beyond the limit was taken")
	}

	a.Put(path, `{"memory_mb": 512}`).Want(403)
	administrator.Put(path, `{}`).Want(422).Code("nothing_to_change")
	administrator.Put(path, `{"memory_mb": 1}`).Want(422).Field("memory_mb")
	a.Get("/projects/x/edge-function-limits").Want(400)
	administrator.Put("/projects/x/edge-function-limits", `{"memory_mb": 512}`).Want(400)
	a.Get(project + "/edge-function-metrics?hours=0").Want(400)
	until(t, "the metrics count the call", func() bool {
		body := string(a.Get(project + "/edge-function-metrics").Want(200).Body)
		return strings.Contains(body, `"function":"size"`) && !strings.Contains(body, `"calls":0`)
	})

	a.Post(project+"/pause", "").Want(200)
	administrator.Put(path, `{"memory_mb": 512}`).Want(409).Code("project_paused")
}
