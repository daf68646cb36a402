/** The links of a Markdown document that lead into the repository, and those among them that lead nowhere. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** `document` is relative to `root`. Looks at links to files and to headings, not at those to other sites. */
export function deadLinks(root: string, document: string): readonly string[] {
  const text = withoutFences(readFileSync(join(root, document), 'utf8'))
  const targets = [...text.matchAll(/\]\((?<target>[^)\s]+)\)/g)].map((match) => match.groups?.['target'] ?? '')
  return targets.filter((target) => !/^[a-z]+:/.test(target) && isDead(root, document, target))
}

function isDead(root: string, document: string, target: string): boolean {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? join(root, document) : join(root, dirname(document), path)
  if (!existsSync(file)) return true
  return anchor !== undefined && file.endsWith('.md') && !anchorsOf(readFileSync(file, 'utf8')).has(anchor)
}

/** The anchors of a page's headings, as GitHub makes them. */
function anchorsOf(markdown: string): ReadonlySet<string> {
  const headings = [...withoutFences(markdown).matchAll(/^#+ +(?<title>.+?) *$/gm)]
  const anchors = new Set<string>()
  for (const { groups } of headings) {
    const title = (groups?.['title'] ?? '').toLowerCase().replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
    const anchor = title.replaceAll(' ', '-')
    let unique = anchor
    for (let n = 1; anchors.has(unique); n += 1) unique = `${anchor}-${n}`
    anchors.add(unique)
  }
  return anchors
}

function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^(?<ticks>`{3,})[\s\S]*?^\k<ticks>/gm, '')
}
