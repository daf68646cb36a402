import { readdirSync } from 'node:fs'
import { expect, it } from 'vitest'
import { plant, ROOT } from '../repository/tool.ts'
import { deadLinks } from './links.ts'

it('every link in the documents leads somewhere', () => {
  const pages = (directory: string, recursive: boolean): readonly string[] =>
    readdirSync(`${ROOT}/${directory}`, { recursive, encoding: 'utf8' })
      .filter((path) => path.endsWith('.md'))
      .map((path) => (directory === '.' ? path : `${directory}/${path}`))
  const dead = [...pages('.', false), ...pages('docs', true)].flatMap((page) =>
    deadLinks(ROOT, page).map((target) => `${page}: ${target}`),
  )
  expect(dead).toEqual([])
})

it('links to missing files and headings are found', () => {
  const page = [
    '# A page, with `code` & more',
    '[file](../src/a.ts) [page](other.md) [heading](other.md#two-words) [own](#a-page-with-code--more)',
    '[site](https://example.org/#x)',
    '[gone](gone.ts) [no heading](other.md#three) [not own](#none)',
    '```md\n[in a fence](nowhere.md)\n```',
  ]
  const other = '# One\n\n## Two words\n'
  const root = plant({ 'docs/page.md': page.join('\n\n'), 'docs/other.md': other, 'src/a.ts': '' })
  expect(deadLinks(root, 'docs/page.md')).toEqual(['gone.ts', 'other.md#three', '#none'])
})
