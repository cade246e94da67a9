package picture

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"

	"golang.org/x/image/webp"
)

// format is an input format.
type format struct {
	magic        string // "?" matches any byte
	output       string // default output format; "" means that it depends on transparency
	config       func(io.Reader) (image.Config, error)
	decode       func(io.Reader) (image.Image, error)
	readMetadata func(*head, *source) error // reads metadata beyond config
}

var formats = []*format{
	{"\xff\xd8\xff", JPEG, jpeg.DecodeConfig, jpeg.Decode, (*head).readJPEG},
	{"\x89PNG\r\n\x1a\n", PNG, decodePNGConfig, decodePNG, (*head).readPNG},
	{"GIF8?a", PNG, gif.DecodeConfig, gif.Decode, func(*head, *source) error { return nil }},
	{"RIFF????WEBP", "", webp.DecodeConfig, decodeWebP, (*head).readWebP},
}

// head holds a picture's metadata.
type head struct {
	format        *format
	width, height int
	model         color.Model
	orientation   int    // EXIF orientation: 1 to 8
	profile       []byte // ICC profile
	multiPass     bool   // progressive JPEG or interlaced PNG, which decodes in two buffers
}

// maxHeadBytes bounds the bytes that are read for metadata before the pixels.
const maxHeadBytes = 2 << 20

// readHead reads a picture's metadata and rejects pictures with too many pixels.
func readHead(s *source) (head, error) {
	h := head{orientation: 1}

	magic := make([]byte, 12)
	if _, err := io.ReadFull(s, magic); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return h, err
	}

	for _, f := range formats {
		if f.matches(magic) {
			h.format = f
		}
	}

	if h.format == nil {
		return h, unprocessable("not_an_image", "the file is not a JPEG, PNG, GIF or WebP picture")
	}

	c, err := h.format.config(&limitedSource{s: s, remaining: maxHeadBytes})
	if err != nil {
		return h, err
	}

	h.width, h.height, h.model = c.Width, c.Height, c.ColorModel
	if c.Width < 1 || c.Height < 1 {
		return h, errors.New("the picture has no pixels")
	}
	if int64(c.Width)*int64(c.Height) > MaxPixels {
		return h, unprocessable("too_many_pixels", "the picture of %d × %d exceeds the limit of %d pixels", c.Width,
			c.Height, MaxPixels)
	}
	if err := h.format.readMetadata(&h, s); s.err != nil {
		return h, err
	}

	return h, nil // damaged metadata does not make the pixels invalid
}

func (f *format) matches(start []byte) bool {
	for i := range len(f.magic) {
		if f.magic[i] != '?' && f.magic[i] != start[i] {
			return false
		}
	}

	return true
}

// upright returns the dimensions after applying the orientation.
func (h head) upright() (width, height int) {
	if h.orientation >= 5 {
		return h.height, h.width
	}
	return h.width, h.height
}

// memory returns an upper estimate for the bytes needed to decode the picture.
func (h head) memory() int64 {
	pixels := int64(h.width) * int64(h.height)
	values := int64(4) // bytes per pixel
	switch h.model {
	case color.GrayModel:
		values = 1
	case color.YCbCrModel:
		values = 3
	case color.RGBA64Model, color.NRGBA64Model:
		values = 8
	case color.RGBAModel:
		if h.format.output == JPEG { // converted from planes
			values = 7
		}
	case color.CMYKModel:
		values = 12 // converted twice
	}

	switch h.format.output {
	case JPEG:
		if h.multiPass { // coefficients of four bytes each
			values *= 5
		}
	case "": // WebP: the pixels, and a transformation's intermediate pixels
		values = 12
	default:
		if h.multiPass {
			values *= 2
		}
		values += 4 // the frame is drawn onto the canvas
	}

	return pixels * values
}

// limitedSource reads a source from the start, up to a limit.
type limitedSource struct {
	s         *source
	started   bool
	remaining int
}

// Read implements io.Reader.
func (r *limitedSource) Read(p []byte) (int, error) {
	if !r.started {
		r.started = true
		if _, err := r.s.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
	}

	if r.remaining == 0 {
		return 0, io.EOF
	}

	n, err := r.s.Read(p[:min(len(p), r.remaining)])
	r.remaining -= n

	return n, err
}

// readJPEG reads the segments before the first scan.
func (h *head) readJPEG(s *source) error {
	r := bufio.NewReader(&limitedSource{s: s, remaining: maxHeadBytes})
	if _, err := r.Discard(2); err != nil {
		return err
	}

	for {
		var marker [4]byte
		if _, err := io.ReadFull(r, marker[:1]); err != nil {
			return err
		}

		for marker[1] = 0xff; marker[1] == 0xff; { // fill bytes may precede the marker
			if _, err := io.ReadFull(r, marker[1:2]); err != nil {
				return err
			}
		}

		if marker[0] != 0xff || marker[1] == 0xda { // start of scan
			return nil
		}

		if _, err := io.ReadFull(r, marker[2:]); err != nil {
			return err
		}

		length := int(binary.BigEndian.Uint16(marker[2:])) - 2
		if length < 0 {
			return nil
		}

		h.multiPass = h.multiPass || marker[1] == 0xc2

		if marker[1] != 0xe1 && marker[1] != 0xe2 {
			if _, err := r.Discard(length); err != nil {
				return err
			}
			continue
		}

		segment := make([]byte, length)
		if _, err := io.ReadFull(r, segment); err != nil {
			return err
		}

		if exif, ok := bytes.CutPrefix(segment, []byte("Exif\x00\x00")); ok && marker[1] == 0xe1 {
			h.readOrientation(exif)
		}

		// A profile is split into parts, each with an index and the part count.
		if part, ok := bytes.CutPrefix(segment, []byte(profileName)); ok && marker[1] == 0xe2 && len(part) > 2 {
			h.profile = append(h.profile, part[2:]...)
		}
	}
}

// readPNG reads the chunks before the pixels.
func (h *head) readPNG(s *source) error {
	r := bufio.NewReader(&limitedSource{s: s, remaining: maxHeadBytes})
	if _, err := r.Discard(len(h.format.magic)); err != nil {
		return err
	}

	for {
		var start [8]byte
		if _, err := io.ReadFull(r, start[:]); err != nil {
			return err
		}

		length, kind := binary.BigEndian.Uint32(start[:4]), string(start[4:])
		switch {
		case kind == "IDAT":
			return nil
		case length > maxHeadBytes:
			return io.ErrUnexpectedEOF
		case kind != "IHDR" && kind != "eXIf" && kind != "iCCP":
			if _, err := r.Discard(int(length) + 4); err != nil {
				return err
			}
			continue
		}

		chunk := make([]byte, length+4)
		if _, err := io.ReadFull(r, chunk); err != nil {
			return err
		}

		chunk = chunk[:length]
		switch kind {
		case "IHDR":
			h.multiPass = length == 13 && chunk[12] == 1
		case "eXIf":
			h.readOrientation(chunk)
		case "iCCP":
			h.profile = inflateProfile(chunk)
		}
	}
}

// readWebP reads the chunks, also after the pixels, since EXIF follows them.
func (h *head) readWebP(s *source) error {
	at := int64(12)
	for range 16 {
		if _, err := s.Seek(at, io.SeekStart); err != nil {
			return err
		}

		var start [8]byte
		if _, err := io.ReadFull(s, start[:]); err != nil {
			return err
		}

		length, kind := int64(binary.LittleEndian.Uint32(start[4:])), string(start[:4])
		if (kind == "EXIF" || kind == "ICCP") && length <= maxHeadBytes {
			chunk := make([]byte, length)
			if _, err := io.ReadFull(s, chunk); err != nil {
				return err
			}

			if kind == "EXIF" {
				h.readOrientation(bytes.TrimPrefix(chunk, []byte("Exif\x00\x00")))
			} else {
				h.profile = chunk
			}
		}

		at += 8 + length + length&1
	}

	return nil
}

// readOrientation reads the orientation from EXIF data, if present.
func (h *head) readOrientation(exif []byte) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(exif, []byte("II*\x00")):
		order = binary.LittleEndian
	case bytes.HasPrefix(exif, []byte("MM\x00*")):
		order = binary.BigEndian
	default:
		return
	}

	if len(exif) < 8 {
		return
	}

	at := uint64(order.Uint32(exif[4:]))
	if at+2 > uint64(len(exif)) {
		return
	}

	entries := exif[at+2:]
	for range order.Uint16(exif[at:]) {
		if len(entries) < 12 {
			return
		}

		const orientation, short = 0x0112, 3
		if order.Uint16(entries) == orientation && order.Uint16(entries[2:]) == short {
			if o := int(order.Uint16(entries[8:])); o >= 1 && o <= 8 {
				h.orientation = o
			}
			return
		}

		entries = entries[12:]
	}
}
