package api_test

import (
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

func TestSmoke(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	a.CreateTable("orders", "total numeric(10,2)")
	a.Post("/tables/orders/columns", `{"name":"note","type":"text"}`).Want(201).Content("name", "note")
	a.Put("/tables/orders/rename", `{"name":"sales"}`).Want(200)
}
