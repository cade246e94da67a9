// Refuses texts for people that stand in a component rather than in src/texts, where translators find them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'

const source = new URL('src', import.meta.url).pathname
const shown = new Set(['action', 'alt', 'aria-label', 'cancel', 'hint', 'label', 'lead', 'legend', 'placeholder', 'text', 'title', 'trigger'])
const code = new Set(['code', 'kbd', 'pre']) // what they hold is no language
const found = []

// isText reports whether a literal has words, and neither a single value such as null nor an address or SQL.
const isText = (text) => /\p{L}/u.test(text) && !/^(null|true|false)$/.test(text) && !/^(select|alter|using|with check) |^https?:/.test(text)

// literals returns the literals that an expression may show.
function literals(node) {
  if (ts.isJsxExpression(node)) return node.expression === undefined ? [] : literals(node.expression)
  if (ts.isParenthesizedExpression(node)) return literals(node.expression)
  if (ts.isStringLiteralLike(node)) return [node.text]
  if (ts.isTemplateExpression(node)) return [node.head.text, ...node.templateSpans.map((s) => s.literal.text)]
  if (ts.isConditionalExpression(node)) return [...literals(node.whenTrue), ...literals(node.whenFalse)]
  if (!ts.isBinaryExpression(node)) return []

  switch (node.operatorToken.kind) {
    case ts.SyntaxKind.AmpersandAmpersandToken:
      return literals(node.right)
    case ts.SyntaxKind.BarBarToken:
    case ts.SyntaxKind.QuestionQuestionToken:
    case ts.SyntaxKind.PlusToken:
      return [...literals(node.left), ...literals(node.right)]
    default:
      return []
  }
}

function check(path) {
  const file = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2022, true, ts.ScriptKind.TSX)

  const visit = (node) => {
    if (ts.isJsxElement(node) && code.has(node.openingElement.tagName.getText())) return

    const texts = ts.isJsxText(node) ? [node.text]
      : ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent) ? literals(node)
      : ts.isJsxAttribute(node) && shown.has(node.name.getText()) && node.initializer ? literals(node.initializer)
      : ts.isCallExpression(node) && node.expression.getText() === 'toast' ? literals(node.arguments[0])
      : []
    for (const text of texts.filter(isText)) {
      const { line } = file.getLineAndCharacterOfPosition(node.getStart())
      found.push(`${path}:${line + 1}: ${text.trim()}`)
    }

    ts.forEachChild(node, visit)
  }
  visit(file)
}

for (const name of readdirSync(source, { recursive: true })) {
  if (name.endsWith('.tsx')) check(join(source, name))
}
if (found.length > 0) {
  console.error(`Move these texts into src/texts:\n${found.join('\n')}`)
  process.exit(1)
}
