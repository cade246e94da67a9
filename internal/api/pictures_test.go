package api_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	_ "image/jpeg"
	"strings"
	"testing"

	"github.com/socle-dev/socle/internal/api/apitest"
)

// decodeImage returns the image in a response, and fails the test unless it has the declared
// format.
func decodeImage(t *testing.T, r *apitest.Reply) image.Image {
	t.Helper()

	m, format, err := image.Decode(bytes.NewReader(r.Want(200).Body))
	if err != nil || r.Header.Get("Content-Type") != "image/"+format {
		t.Fatalf("got %s in %s: %v", r.Header.Get("Content-Type"), format, err)
	}

	return m
}

// wantColors fails the test unless an image has this size and approximately these colors in the
// centers of its quarters.
func wantColors(t *testing.T, name string, m image.Image, w, h int, want ...color.NRGBA) {
	t.Helper()

	if got := m.Bounds().Max; got != image.Pt(w, h) {
		t.Errorf("%s: got %v, want %d × %d", name, got, w, h)
		return
	}

	for i, c := range want {
		got := color.NRGBAModel.Convert(m.At(w/4+i%2*w/2, h/4+i/2*h/2)).(color.NRGBA)
		for j, d := range [4]int{
			int(got.R) - int(c.R), int(got.G) - int(c.G), int(got.B) - int(c.B), int(got.A) - int(c.A),
		} {
			if d < -40 || d > 40 { // tolerance for JPEG artifacts at this size
				t.Errorf("%s: got %v in quarter %d, want %v (%d)", name, got, i, c, j)
			}
		}
	}
}

// TestPictures creates variants of images of all formats.
func TestPictures(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "pictures", "is_public": true}`)
	names := map[string]string{} // by content

	variant := func(t *testing.T, content, query string) *apitest.Reply {
		t.Helper()

		if names[content] == "" {
			names[content] = fmt.Sprint(len(names), ".bin")
			put(a, c, names[content], content).Want(200)
		}

		return a.Anonymous().Get(address(a, c, names[content]) + "?" + query)
	}

	photo := asJPEG(t, quarters(80, 40))
	for _, tt := range []struct {
		query string
		w, h  int
		want  []color.NRGBA
	}{
		{"width=40", 40, 20, []color.NRGBA{red, green, blue, white}},
		{"height=10", 20, 10, []color.NRGBA{red, green, blue, white}},
		{"width=20&height=20", 20, 20, []color.NRGBA{red, green, blue, white}},
		{"width=20&height=20&fit=cover", 20, 20, nil},
		{"width=20&height=20&fit=contain", 20, 10, nil},
		{"width=20&height=20&fit=fill", 20, 20, []color.NRGBA{red, green, blue, white}},
		// Cropping is centered.
		{"width=10&height=20&fit=cover", 10, 20, []color.NRGBA{red, green, blue, white}},
		{"width=4000", 80, 40, nil},
		{"width=4000&height=4000", 40, 40, nil},
		{"quality=10", 80, 40, nil},
		{"format=png", 80, 40, []color.NRGBA{red, green, blue, white}},
	} {
		wantColors(t, tt.query, decodeImage(t, variant(t, photo, tt.query)), tt.w, tt.h, tt.want...)
	}

	// Each of the eight EXIF orientations results in the same image.
	seen := []color.NRGBA{red, green, blue, white}
	for o, stored := range [8][4]color.NRGBA{{red, green, blue, white}, {green, red, white, blue},
		{white, blue, green, red}, {blue, white, red, green}, {red, blue, green, white}, {green, white, red, blue},
		{white, green, blue, red}, {blue, red, white, green}} {
		m := image.NewNRGBA(image.Rect(0, 0, 64, 32))
		w, h := 32, 16
		if o >= 4 {
			m, w, h = image.NewNRGBA(image.Rect(0, 0, 32, 64)), 32, 16
		}

		for i := range m.Rect.Dx() * m.Rect.Dy() {
			x, y := i%m.Rect.Dx(), i/m.Rect.Dx()
			m.SetNRGBA(x, y, stored[x*2/m.Rect.Dx()+y*2/m.Rect.Dy()*2])
		}

		order := []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian}[o%2]
		r := variant(t, asJPEG(t, m, "\xe0JFIF", "\xe1Exif\x00\x00"+exif(order, uint16(o+1))), "width=32")
		wantColors(t, fmt.Sprint("orientation ", o+1), decodeImage(t, r), w, h, seen...)

		if bytes.Contains(r.Body, []byte("Exif")) || bytes.Contains(r.Body, []byte(secretPlace)) {
			t.Error("the variant contains metadata of the file")
		}
	}

	sideways := asPNG(t, quarters(64, 32))
	sideways = sideways[:33] + chunk("eXIf", exif(binary.BigEndian, 6)) + sideways[33:]
	wantColors(t, "a PNG on its side", decodeImage(t, variant(t, sideways, "width=16&height=20&fit=fill")), 16, 20,
		blue,
		red, white, green)

	for _, odd := range []string{
		"", "II*\x00", "II*\x00\xff\xff\xff\xff", exif(binary.LittleEndian, 99), exif(binary.LittleEndian, 6)[:15],
		"MM\x00*\x00\x00\x00\x08\xff\xff",
	} {
		wantColors(t, "odd EXIF",
			decodeImage(t, variant(t, asJPEG(t, quarters(80, 40), "\xe1Exif\x00\x00"+odd), "width=40")),
			40, 20, seen...)
	}

	// All color models.
	deep, grey, see := image.NewNRGBA64(image.Rect(0, 0, 40, 20)), image.NewGray16(image.Rect(0, 0, 40, 20)),
		image.NewNRGBA(image.Rect(0, 0, 40, 20))

	ink := image.NewCMYK(image.Rect(0, 0, 40, 20))
	for i := range 40 * 20 {
		deep.Set(i%40, i/40, red)
		grey.Set(i%40, i/40, color.Gray16{0x8080})

		if i%40 < 20 {
			see.Set(i%40, i/40, color.NRGBA{255, 0, 0, 128})
		}

		ink.SetCMYK(i%40, i/40, color.CMYK{0, 255, 255, 0})
	}

	pink, mean := color.NRGBA{255, 127, 127, 255}, color.NRGBA{128, 128, 128, 255}
	wantColors(t, "16 bits", decodeImage(t, variant(t, asPNG(t, deep), "width=20")), 20, 10, red, red, red, red)
	wantColors(t, "16 bits of grey", decodeImage(t, variant(t, asPNG(t, grey), "width=20")), 20, 10, mean, mean)
	wantColors(t, "transparent", decodeImage(t, variant(t, asPNG(t, see), "width=20")), 20, 10,
		color.NRGBA{255, 0, 0, 128}, nothing, color.NRGBA{255, 0, 0, 128}, nothing)

	wantColors(t, "on white", decodeImage(t, variant(t, asPNG(t, see), "width=20&format=jpeg")), 20, 10, pink,
		white, pink, white)

	wantColors(t, "the first frame", decodeImage(t, variant(t, asGIF(t), "width=20")), 20, 10, nothing,
		red, nothing, red)

	opaque := decodeImage(t, variant(t, asWebP(40, 20, red), "width=20"))
	if _, ok := opaque.(*image.YCbCr); !ok {
		t.Errorf("got %T of an opaque WebP, want a JPEG", opaque)
	}

	wantColors(t, "WebP", opaque, 20, 10, red, red, red, red)
	glass := color.NRGBA{0, 0, 255, 100}
	wantColors(t, "WebP, transparent and on its side",
		decodeImage(t, variant(t, asWebP(40, 20, glass, riff("EXIF", exif(binary.LittleEndian, 8))), "width=10")), 10,
		20, glass, glass)

	// An RGB color profile is copied into both formats, any other one is dropped.
	for _, size := range []int{200, 100_000} {
		p := profile(size)
		var segments []string
		for i := 0; i*60_000 < size; i++ {
			segments = append(segments,
				"\xe2ICC_PROFILE\x00"+string([]byte{byte(i + 1), 2})+p[i*60_000:min(size, (i+1)*60_000)])
		}

		source := asJPEG(t, quarters(80, 40), segments...)
		once := variant(t, source, "width=40").Want(200).Body
		if twice := variant(t, string(once), "format=png").Want(200).Body; !strings.Contains(string(twice), "iCCP") {
			t.Error("the PNG variant has no profile")
		} else if third := variant(t, string(twice), "format=jpeg").
			Want(200).Body; !bytes.Contains(third, []byte(p[:200])) {
			t.Error("the JPEG variant has no profile")
		}
	}

	if r := variant(t, asJPEG(t, inkToGray(ink), "\xe2ICC_PROFILE\x00\x01\x01"+profile(200)), "width=20").
		Want(200); bytes.Contains(r.Body, []byte("ICC_PROFILE")) {
		t.Error("a gray image has an RGB profile")
	}
}

func inkToGray(m image.Image) image.Image {
	grey := image.NewGray(m.Bounds())
	for i := range grey.Pix {
		grey.Set(i%grey.Stride, i/grey.Stride, m.At(i%grey.Stride, i/grey.Stride))
	}

	return grey
}

// TestPicturesRefused covers files that are not images, broken and oversized images, and invalid
// parameters.
func TestPicturesRefused(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "pictures", "max_file_size": 100000000}`)
	photo, drawing := asJPEG(t, quarters(80, 40)), asPNG(t, quarters(80, 40))
	bomb := deflated(t, make([]byte, 8<<20)) // several times what is read of metadata, or is in the image
	lying := []byte(asGIF(t))
	binary.LittleEndian.PutUint16(lying[6:], 30) // the screen is smaller than its frames

	for name, tt := range map[string]struct{ content, code string }{
		"empty":               {"", "not_an_image"},
		"a text":              {"hello, world", "not_an_image"},
		"SVG":                 {`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`, "not_an_image"},
		"the magic alone":     {"\xff\xd8\xff", "damaged_image"},
		"a JPEG cut short":    {photo[:len(photo)/2], "damaged_image"},
		"a PNG cut short":     {drawing[:len(drawing)-30], "damaged_image"},
		"a PNG without a row": {headerPNG(80, 40), "damaged_image"},
		"a wrong checksum":    {strings.Replace(drawing, "IDAT", "IDAU", 1), "damaged_image"},
		"a lying GIF":         {string(lying), "damaged_image"},
		"no pixels":           {headerPNG(0, 40), "damaged_image"},
		"a lying WebP": {strings.Replace(asWebP(40, 20, red), "\x27\x00\x00\x13", "\x17\x00\x00\x13", 1),
			"damaged_image"},
		"a wide bomb": {headerPNG(200_000, 200_000, chunk("IDAT", "")), "too_many_pixels"},
		"a bomb of text": {headerPNG(80, 40, chunk("zTXt", "bomb\x00\x00"+bomb), chunk("iCCP", "bomb\x00\x00"+bomb)),
			"damaged_image"},
		"a bomb of pixels": {headerPNG(80, 40, chunk("IDAT", bomb)), "damaged_image"},
	} {
		put(a, c, name, tt.content).Want(200)
		a.Get(address(a, c, name) + "?width=10").Want(422).Code(tt.code)
	}

	put(a, c, "large", photo).Want(200)
	execute(t, a, fmt.Sprintf("update storage.files set size = %d where full_file_name = 'large'", 64<<20+1))
	a.Get(address(a, c, "large") + "?width=10").Want(422).Code("too_large")

	interlaced := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 7000), 7000)
	put(a, c, "deep", "\x89PNG\r\n\x1a\n"+chunk("IHDR", string(interlaced)+"\x10\x06\x00\x00\x01")).Want(200)
	// 16 bits a channel, interlaced: twice the memory.
	a.Get(address(a, c, "deep") + "?width=10").Want(422).Code("too_many_pixels")

	if n := query[int](t, a, "select count(*) from storage.variants") +
		query[int](t, a, "select count(*) from storage.uploads"); n != 0 {
		t.Errorf("got %d variants of invalid images, want none", n)
	}

	file := fmt.Sprint(put(a, c, "photo", photo).Want(200).Get("uuid"))
	for _, path := range []string{address(a, c, "photo"), "/containers/" + c + "/files/" + file + "/download"} {
		for query, field := range map[string]string{"width=0": "width", "width=-1": "width", "width=4097": "width",
			"width=1.5": "width", "width=": "width", "width=1e3": "width", "width=99999999999999999999": "width",
			"height=x": "height", "fit=cover": "fit", "width=10&fit=contain": "fit",
			"width=10&height=10&fit=inside": "fit", "format=webp": "format", "format=JPEG": "format",
			"quality=0": "quality", "quality=101": "quality", "width=10&width=20": "width"} {
			a.Get(path + "?" + query).Want(400).Field(field)
		}

		wantColors(t, path, decodeImage(t, a.Get(path+"?width=40&quality=100")), 40, 20, red, green, blue, white)
	}

	a.Get("/containers/" + c + "/files/" + file + "/download?widht=10").Want(400).Field("widht")
	a.Get(address(a, c, "photo") + "?v=7&utm_source=mail").Want(200) // unknown parameters are ignored

	text := fmt.Sprint(put(a, c, "text", "hello").Want(200).Get("uuid"))
	a.Get("/containers/" + c + "/files/" + text + "/download?width=10").Want(422).Code("not_an_image")
	a.Get("/containers/" + c + "/files/" + apitest.MissingUUID + "/download?width=10").Want(404)
	a.Get(address(a, c, "missing") + "?width=10").Want(404)
	a.Anonymous().Get(address(a, c, "photo") + "?width=10").Want(404)
	a.OtherUser().Get(address(a, c, "photo") + "?width=10").Want(404)
}

// TestPictureHeaders checks that a variant has the same headers as any other file.
func TestPictureHeaders(t *testing.T) {
	t.Parallel()

	a := apitest.Shared(t)
	c := a.Create("/containers", `{"name": "pictures", "is_public": true}`)
	put(a, c, "a/holiday.photo.JPEG", asJPEG(t, quarters(80, 40)), "Content-Type: image/jpeg").Want(200)

	original := address(a, c, "a/holiday.photo.JPEG")
	path := original + "?width=40&format=png"
	r := a.Get(path).Want(200)
	for name, want := range map[string]string{"Content-Type": "image/png", "Content-Length": fmt.Sprint(len(r.Body)),
		"Accept-Ranges": "bytes", "Cache-Control": "private, no-cache", "X-Content-Type-Options": "nosniff",
		"Content-Security-Policy": "default-src 'none'; sandbox",
		"Content-Disposition":     `inline; filename="holiday.photo.png"`, "Access-Control-Allow-Origin": "*",
		"Vary": a.Get(original).Header.Get("Vary")} {
		if got := r.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}

	if got := a.Get(original + "?width=40").Header.Get("Content-Disposition"); got !=
		`inline; filename="holiday.photo.JPEG"` {
		t.Errorf("got %s of an unchanged JPEG", got)
	}

	tag := r.Header.Get("ETag")
	if tag == a.Get(original).Header.Get("ETag") || tag == a.Get(original+"?width=40").Header.Get("ETag") {
		t.Errorf("two variants share the ETag %s", tag)
	}

	a.Send("GET", path, "", "If-None-Match: "+tag).Want(304)
	a.Send("GET", path, "", "If-Match: "+tag).Want(200)
	a.Send("GET", path, "", `If-Match: "other"`).Want(412)

	if head := a.Send("HEAD", path, "").Want(200); head.Header.Get("ETag") != tag ||
		head.Header.Get("Content-Length") != fmt.Sprint(len(r.Body)) || len(head.Body) > 0 {
		t.Errorf("got %v and %q for HEAD", head.Header, head.Body)
	}
	if part := a.Send("GET", path, "", "Range: bytes=1-3").Want(206); string(part.Body) != "PNG" {
		t.Errorf("got %q", part.Body)
	}

	a.Send("GET", path, "", "Range: bytes=9999999-").Want(416)

	// A variant is created again after its file's bytes change, not after a new name.
	put(a, c, "a/holiday.photo.JPEG", asPNG(t, quarters(40, 80)), "Content-Type: image/png").Want(200)
	replaced := a.Get(path).Want(200)
	if replaced.Header.Get("ETag") == tag {
		t.Error("got the variant of the replaced bytes")
	}

	wantColors(t, "replaced", decodeImage(t, replaced), 40, 80, red, green, blue, white)
}
