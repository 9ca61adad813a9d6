// SPDX-License-Identifier: Apache-2.0

package contract

// Values of an argument, for the comparison with the agent's loader; both may reject one.
var values = []string{
	// Texts
	`""`, `"a"`, `"a\n\t\r\"\\"`, `"\u00e9\U0001F600"`, `"\ud800"`, `"\U00110000"`, `"\u12"`, `"\$"`, `"\'"`,
	`"$"`, `"%"`, `"$$"`, `"100%"`, `"$${x}"`, `"$$${x}"`, `"%%{x}"`, `"%%%{x}"`, `"{{env.X}}"`, `"<% %>"`,
	`"${x}"`, `"${x.y}"`, `"${env("X")}"`, `"${"a"}"`, `"${5}"`, `"a${5}b${true}"`, `"a${null}"`, `"${null}"`,
	`"a${[1]}"`, `"${"b${"c"}"}"`, "\"${\n5\n}\"", `"${}"`, `"${5"`, `"a`, "\"a\nb\"", "\"a\tb\"", "\"\u00a0\"",
	`'a'`, "`a`", "\u201ca\u201d", `"#"`, `"//"`, `"/*"`, "\"\xff\"", "\"\x00\"", "\"\x1b\"",
	// Texts of several lines
	"<<EOF\nEOF", "<<EOF\na\nEOF", "<<EOF\na\n  EOF", "<<-EOF\n    a\n\n  \t b\n  EOF", "<<-EOF\n  a\n \n   b\nEOF",
	"<<-EOF\n\ta\n  b\nEOF", "<<-EOF\n\u00a0 a\n  b\nEOF", "<<EOF\n\\n\"$\n%\n$$\nEOF", "<<EOF\n$EOF\nEOF",
	"<<EOF\n${5}\nEOF", "<<-EOF\n  ${5}\n   a\nEOF", "<<-EOF\n  a ${5}\n   ${6} b\nEOF", "<<EOF\n$${x}\nEOF",
	"<<EOF\nEOFX\nX EOF\nEOF", "<<EOF\r\na\r\nEOF\r", "<<EOF\r\n\r\n EOF \r", "<<-EOF\r\n  a\r\n\r\n   b\r\n  EOF\r",
	"<<EOF\na\rb\nEOF", "<<EOF\na", "<< EOF\na\nEOF", "<<EOF a\nEOF", "<<\"EOF\"\na\nEOF", "<<E-1\na\nE-1",
	"<<-EOF\nEOF", "<<-EOF\n\n\nEOF", "<<-EOF\n  $\n   %\nEOF", "[<<EOF\na\nEOF\n]", "<<EOF\n<<EOF\nEOF",
	// Numbers and words
	`0`, `-0`, `5`, `-5`, `- 5`, `--5`, `1.50`, `1.0`, `1e3`, `1E+3`, `1.5e-3`, `1e`, `1.`, `.5`, `007`, `0x10`, `1_000`,
	`1.2.3`, `5m`, `5 m`, `+5`, `12345678901234567890.12300`, `0.1`, `1e30`, `true`, `false`, `null`, `True`, `yes`,
	`truex`, `-true`, `-"a"`, `!5`, `(5)`, "(\n5\n)", `((5))`, `()`, `(5`, `5)`,
	// What the language has besides
	`[]`, `[1, "a"]`, `{}`, `{ a = 1 }`, `x`, `x.y`, `x[0]`, `jsonencode({ a = 1 })`, `file("x")`, `a::b()`,
	"", "\n5", "5, other = 6", "5 other = 6", "5\nother = 6", "5, other : 6,", "5,,other = 6", "5\n, other = 6",
	"5 # c", "5 // c\nother = 6", "5 /* c\n */", "5 /* c", "/* c */ 5", "5\n\"quoted key\" = 6", "5\n(\"a\") = 6",
	"5\n1 = 6", "5\n1.50 = 6", "5\ntrue = 6", "5\nnull = 6", "5\n\"${1}\" = 6", "5\nkey = 6", "5\na.b = 6", "5\na-b = 6",
	"5\nfor = 6", "5\n-1 = 6", "5\n[1] = 6", "5\na == 6", "5\na", "5\na =", "5\na\n= 6", "5\n= 6", "5\n; a = 6",
}

// Values that the agent computes.
var strictlyOurs = []string{
	`1 + 2`, `2 > 1`, `!true`, `true ? "a" : "b"`, `["a"][0]`, `{ a = "b" }.a`, `"a${1 + 2}"`, `"${~ 5 ~}"`,
	`"%{ if true }a%{ endif }"`, `-"5"`, `"e` + "\u0301" + `"`, `1e200`,
}

var quotedPieces = []string{
	"a", " ", "$", "%", "{", "}", "$$", "%%", "${", "$${", "%%{", "${1}", "${\"x\"}", "\\n", "\\\\", "\\\"", "\\u00e9", "#",
	"/*", "//", "\u00e9", "\u00a0", "~", "<<EOF", "EOF", "\t", "\\",
}

var heredocPieces = []string{
	"a", " ", "  ", "\t", "\n", "\n", "\n", "\n  ", "\n    b", "\r\n", "$", "%", "$$", "{", "}", "${1}", "$${", "%%{", "\\n",
	"\\", "\"", "EOF", " EOF", "\nEOFX", "\u00a0", "\u3000", "${", "#", "${\"x\"}", "\n ${1}", "\n $",
}
