package server

import "testing"

func TestLinkGuides(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"[a](#b-c)":             "[a](/docs?api=cli#cli/description/b-c)",
		"[a](api.md)":           "[a](/docs?api=api)",
		"[a\nb](rest.md#c)":     "[a\nb](/docs?api=rest#rest/description/c)",
		"[a](openapi.json)":     "[a](/openapi.json)",
		"[a](decisions/age.md)": "a",
		"[a](https://b.org/c)":  "[a](https://b.org/c)",
		"x[1](y)":               "x[1](y)",
	} {
		if got := linkGuides("cli", text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}

	for text, want := range map[string]string{
		"[a](../api.md#b)":   "[a](/docs?api=api#api/description/b)",
		"[a](migrations.md)": "[a](/docs?api=migrations)",
		"[a](s3.md)":         "[a](/docs?api=s3)",
		"[a](#b)":            "[a](/docs?api=import#import/description/b)",
		"[a](../../README.md#first-five-minutes)": "a",
	} {
		if got := linkGuides("guides/import", text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
