package openapi

// idempotencyParameter is the name of the shared parameter for Idempotency-Key.
const idempotencyParameter = "idempotencyKey"

// repeatable adds the Idempotency-Key to a path's writes.
func (s Schema) repeatable(p path) path {
	if !s.Transactions {
		return p
	}

	for _, write := range []*operation{p.Post, p.Patch, p.Delete} {
		if write != nil {
			write.Parameters = append(write.Parameters, refer("parameters", idempotencyParameter))
		}
	}

	return p
}

// batchOperation describes a batch: a list of operations in one transaction.
func batchOperation() *operation {
	text := &shape{Type: "string"}
	one := &shape{Type: "object", Required: []string{"method", "path"}, Properties: object{
		{"id", &shape{Type: "string", MaxLength: 63,
			Description: "Names the answer: {\"$ref\": \"id.0.column\"} in a body, ${id.0.column} as a filter's value"}},
		{"method", &shape{Type: "string", Enum: []string{"GET", "POST", "PATCH", "PUT", "DELETE"}}},
		{"path", &shape{Type: "string", Description: "Table or rpc/function, with its query string"}},
		{"headers", &shape{Type: "object",
			Description: "Accept, Accept-Profile, Content-Profile, Content-Type, Prefer, Range"}},
		{"body", &shape{Description: "Body of the request, in JSON"}},
	}}
	answer := &shape{Type: "object", Properties: object{
		{"id", text}, {"status", &shape{Type: "integer"}}, {"headers", &shape{Type: "object"}}, {"body", &shape{}}}}

	return &operation{Tags: []string{"Batch"}, Summary: "Run requests in one transaction",
		Description: "All of them, or none: the first failure undoes the others, and its answer has the member operation, " +
			"the index.",
		Produces: []string{"application/json"},
		Parameters: []any{
			parameter{Name: "batch", Required: true, In: "body", Schema: &shape{Type: "object",
				Required:   []string{"operations"},
				Properties: object{{"operations", &shape{Type: "array", Items: one}}}}},
			refer("parameters", idempotencyParameter)},
		Responses: object{{"200", response{"OK", &shape{Type: "array", Items: answer}}}}}
}
