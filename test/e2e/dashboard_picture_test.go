// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"html"
	"slices"
	"strings"
	"time"

	"nomad-harvester.local/test/prometheus"
)

// The size of one panel, and of its plot within it.
const (
	panelWidth, panelHeight = 430, 190
	plotLeft, plotTop       = 50, 34
	plotWidth, plotHeight   = 360, 100
	panelsPerRow            = 2
	moreWidth               = 70 // of "and 9 more"
)

var colours = []string{"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"}

// picture draws what the panels of the dashboard showed, as SVG.
func picture(recordings []recording, began, end time.Time) string {
	rows := (len(recordings) + panelsPerRow - 1) / panelsPerRow
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img"
     font-family="ui-sans-serif, sans-serif" font-size="11" fill="#1f2328">
<title>The dashboard during a test: a pool grows to three VMs, and shrinks to one and to none</title>
<style>
  @media (prefers-color-scheme: dark) {
    [fill="#1f2328"] { fill: #e6edf3; } [fill="#f6f8fa"] { fill: #161b22; } [stroke="#d1d9e0"] { stroke: #3d444d; }
  }
</style>
`, panelWidth*panelsPerRow, panelHeight*rows)
	for i, r := range recordings {
		fmt.Fprintf(&b, "<g transform=\"translate(%d %d)\">\n", i%panelsPerRow*panelWidth, i/panelsPerRow*panelHeight)
		r.draw(&b, began, end)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

func (r recording) draw(b *strings.Builder, began, end time.Time) {
	const bottom = plotTop + plotHeight
	fmt.Fprintf(b, "<rect fill=\"#f6f8fa\" x=\"4\" y=\"4\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n", panelWidth-8, panelHeight-8)
	fmt.Fprintf(b, "<text x=\"14\" y=\"22\" font-weight=\"600\" font-size=\"12\">%s</text>\n", html.EscapeString(r.panel.Title))
	legends := r.byPeak()
	if len(legends) == 0 {
		fmt.Fprintf(b, "<text x=\"14\" y=\"60\">Empty: %s</text>\n", html.EscapeString(panels[r.panel.Title].empty))
		return
	}
	low, high := 0.0, 0.0
	for _, samples := range r.series {
		for _, s := range samples {
			low, high = min(low, s.Value), max(high, s.Value)
		}
	}
	if low == high {
		high = 1
	}
	y := func(value float64) float64 { return bottom - (value-low)/(high-low)*plotHeight }
	unit := r.panel.FieldConfig.Defaults.Unit
	for _, value := range slices.Compact([]float64{low, 0, high}) {
		fmt.Fprintf(b, "<line stroke=\"#d1d9e0\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", plotLeft, plotLeft+plotWidth, y(value), y(value))
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", plotLeft-4, y(value)+4, rounded(value, unit))
	}
	x, more := plotLeft, 0
	for i, legend := range legends {
		fmt.Fprintf(b, "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"%s\" points=\"%s\"/>\n", colours[i%len(colours)], points(r.series[legend], began, end, y))
		name := legend
		if name == "" {
			name = r.panel.Title
		}
		if x+legendWidth(name) > panelWidth-moreWidth {
			more++
			continue
		}
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"10\" height=\"3\" fill=\"%s\"/>", x, bottom+22, colours[i%len(colours)])
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x+14, bottom+27, html.EscapeString(name))
		x += legendWidth(name)
	}
	if more > 0 {
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\">and %d more</text>\n", x, bottom+27, more)
	}
}

func legendWidth(name string) int { return 24 + 6*len(name) }

// byPeak returns the legends, those first that went furthest from 0.
func (r recording) byPeak() []string {
	var legends []string
	for legend := range r.series {
		legends = append(legends, legend)
	}
	slices.SortFunc(legends, func(one, other string) int {
		a, b := peak(r.series[one]), peak(r.series[other])
		if a, b = max(a, -a), max(b, -b); a != b {
			if a > b {
				return -1
			}
			return 1
		}
		return strings.Compare(one, other)
	})
	return legends
}

func points(samples []prometheus.Sample, began, end time.Time, y func(float64) float64) string {
	var b strings.Builder
	for _, s := range samples {
		x := plotLeft + (s.At-seconds(began))/end.Sub(began).Seconds()*plotWidth
		fmt.Fprintf(&b, "%.1f,%.1f ", x, y(s.Value))
	}
	return strings.TrimSpace(b.String())
}
