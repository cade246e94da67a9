package web

import "strings"

// page writes a page. style is its inline style, or "".
func (w *writer) page(p page, style markup) {
	w.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>`, when(p.Problem != "", "Error: "), text(p.Title), `</title>
<link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="`, address(stylesheet), `">
`)
	if style != "" {
		w.put("<style>", style, "</style>\n")
	}

	w.put("</head>\n<body>\n<main>\n")
	w.body(p)
	w.put("</main>\n</body>\n</html>\n")
}

// body writes the visible content of a page.
func (w *writer) body(p page) {
	if p.Theme.Logo != "" {
		w.put(`<img class="logo" src="`, address(p.Theme.Logo), `" alt="">`, "\n")
	}

	w.put("<h1>", text(p.Title), "</h1>\n")
	for _, paragraph := range p.Text {
		w.put("<p>", text(paragraph), "</p>\n")
	}

	if p.Problem != "" {
		w.put(`<p class="problem" role="alert">`, text(p.Problem), "</p>\n")
	}
	if p.Form != nil {
		w.form(*p.Form)
	}
	if len(p.Links) > 0 {
		w.links(p.Links)
	}
	if p.Aside != "" {
		w.put(`<p class="aside">`, text(p.Aside), "</p>\n")
	}
}

func (w *writer) links(links []link) {
	w.put(`<ul class="links">`, "\n")
	for _, l := range links {
		w.put(`<li><a href="`, address(l.URL), `">`, text(l.Text), "</a>")
		if l.About != "" {
			w.put(" <span>", text(l.About), "</span>")
		}
		w.put("</li>\n")
	}
	w.put("</ul>\n")
}

func (w *writer) form(f form) {
	w.put(`<form method="post" action="`, address(f.Action), `"`,
		when(f.Files, ` enctype="multipart/form-data"`), ">\n")

	for _, h := range f.Hidden {
		w.put(`<input type="hidden" name="`, text(h.Name), `" value="`, text(h.Value), `">`, "\n")
	}
	for _, i := range f.Inputs {
		w.input(i)
	}
	if f.Honeypot != "" {
		w.put(`<p class="trap" aria-hidden="true"><label>Leave this empty <input name="`, text(f.Honeypot),
			`" tabindex="-1" autocomplete="off"></label></p>`, "\n")
	}

	w.put(`<button type="submit">`, text(f.Button), "</button>\n")
	if f.Decline != "" {
		w.put(`<button class="decline" type="submit" name="`, declineName, `" value="true" formnovalidate>`,
			text(f.Decline),
			"</button>\n")
	}
	w.put("</form>\n")
}

// input writes an input with its label, help and error.
func (w *writer) input(i input) {
	switch i.Type {
	case "radio", "checkboxes":
		w.choices(i)
	case "checkbox":
		w.checkbox(i)
	default:
		w.field(i)
	}
}

// choices writes a group of radio buttons or checkboxes.
func (w *writer) choices(i input) {
	w.put(`<fieldset class="field`, when(i.Row, " row"), i.invalid(), `"`, i.described(), ">\n",
		"<legend>", i.label(), "</legend>\n", i.help())

	kind := markup("checkbox")
	if i.Type == "radio" {
		kind = "radio"
	}
	for n, o := range i.Options {
		w.put(`<label class="choice"><input type="`, kind, `" name="`, text(i.Name), `" value="`, text(o.Value), `"`,
			when(o.Chosen, " checked"), when(i.Required && i.Type == "radio", " required"),
			when(i.Focus && n == 0, " autofocus"), "> ", text(o.Value), "</label>\n")
	}

	w.put(i.failure(), "</fieldset>\n")
}

func (w *writer) checkbox(i input) {
	name := text(i.Name)
	w.put(`<div class="field`, i.invalid(), `">`, "\n",
		`<label class="choice" for="`, name, `"><input id="`, name, `" name="`, name, `" type="checkbox" value="true"`,
		when(i.Value == "true", " checked"), i.state(), "> ", i.label(), "</label>\n",
		i.help(), i.failure(), "</div>\n")
}

// field writes an input that has one value.
func (w *writer) field(i input) {
	name := text(i.Name)
	w.put(`<div class="field`, i.invalid(), `">`, "\n", `<label for="`, name, `">`, i.label(), "</label>\n", i.help())

	switch i.Type {
	case "textarea":
		// Browsers skip the first newline, which must not be one of the value.
		w.put(`<textarea id="`, name, `" name="`, name, `" rows="5"`, i.state(), ">\n", text(i.Value), "</textarea>\n")

	case "select":
		w.put(`<select id="`, name, `" name="`, name, `"`, i.state(), ">\n", `<option value="">Choose…</option>`, "\n")
		for _, o := range i.Options {
			w.put("<option", when(o.Chosen, " selected"), ">", text(o.Value), "</option>\n")
		}
		w.put("</select>\n")

	case "file":
		w.put(`<input id="`, name, `" name="`, name, `" type="file"`, i.state(), ">\n")

	default:
		w.put(`<input id="`, name, `" name="`, name, `" type="`, text(i.Type), `" value="`, text(i.Value), `"`,
			i.state(), ">\n")
	}

	w.put(i.failure(), "</div>\n")
}

func (i *input) label() markup {
	return text(i.Label) + when(i.Optional, ` <span class="optional">(optional)</span>`)
}

func (i *input) help() markup {
	return when(i.Help != "", `<p class="help"`+attribute("id", i.helpID())+">"+text(i.Help)+"</p>\n")
}

// failure returns the error of the input.
func (i *input) failure() markup {
	return when(i.Error != "", `<p class="error"`+attribute("id", i.errorID())+">"+text(i.Error)+"</p>\n")
}

func (i *input) helpID() string  { return i.Name + "-help" }
func (i *input) errorID() string { return i.Name + "-error" }

// invalid returns the class of an input with an error.
func (i *input) invalid() markup { return when(i.Error != "", " invalid") }

// described returns the attribute that refers to the help and the error.
func (i *input) described() markup {
	var ids []string
	if i.Help != "" {
		ids = append(ids, i.helpID())
	}
	if i.Error != "" {
		ids = append(ids, i.errorID())
	}

	return attribute("aria-describedby", strings.Join(ids, " "))
}

// state returns the attributes that all inputs with one value share.
func (i *input) state() markup {
	return attribute("autocomplete", i.Autocomplete) + attribute("inputmode", i.InputMode) +
		attribute("min", i.Min) + attribute("max", i.Max) + attribute("step", i.Step) +
		attribute("minlength", i.MinLength) + attribute("maxlength", i.MaxLength) +
		when(i.Required, " required") + when(i.ReadOnly, " readonly") + when(i.Focus, " autofocus") +
		i.described() + when(i.Error != "", ` aria-invalid="true"`)
}
