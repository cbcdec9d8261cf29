package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// progress shows on a terminal, in one line that is overwritten, which step is being told. Elsewhere it shows
// nothing.
type progress struct {
	out   io.Writer // nil where there is no terminal
	steps int
	width int // of what stands in the line
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	if !ok {
		return &progress{}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progress{}
	}
	return &progress{out: out}
}

func (p *progress) show(step string) {
	if p.out == nil {
		return
	}
	p.steps++
	p.write(fmt.Sprintf("%3d  %s", p.steps, step))
}

// clear empties the line, for what is printed next.
func (p *progress) clear() {
	if p.out == nil {
		return
	}
	p.write("")
	_, _ = io.WriteString(p.out, "\r")
}

func (p *progress) write(line string) {
	blanks := max(p.width-len(line), 0)
	p.width = len(line)
	_, _ = io.WriteString(p.out, "\r"+line+strings.Repeat(" ", blanks))
}
