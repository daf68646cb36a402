/** How the name of the schema gets into statements, and nowhere else. */
import { describe, expect, it } from 'vitest'
import { Statements } from '../../../src/store/postgres/statements.ts'

const plain = new Statements('mine', true)

describe('statements', () => {
  it('puts the schema where the word stands for it', () => {
    expect(plain.render('select perdure.f(x) from perdure.runs')).toBe('select "mine".f(x) from "mine".runs')
  })

  it('leaves texts, comments, names and longer words alone', () => {
    const sql = `select 'perdure.start: perdure.runs', 'perdure', "perdure.x" -- that's perdure.runs\n from superdure.runs`
    expect(plain.render(sql)).toBe(sql)
  })

  it('renders the names of objects within literals', () => {
    expect(plain.render(`nextval('perdure.places')`)).toBe(`nextval('"mine".places')`)
  })

  it.each([
    ['we"ird', `"we""ird".t, '"we""ird".s'`],
    ["it's", `"it's".t, '"it''s".s'`],
    ['$&', `"$&".t, '"$&".s'`],
    ['a.b', `"a.b".t, '"a.b".s'`],
  ])('quotes the schema %s', (schema, rendered) => {
    expect(new Statements(schema, true).render(`perdure.t, 'perdure.s'`)).toBe(rendered)
  })

  it('names a statement by its text, schema included, in no more than 63 bytes', () => {
    const sql = 'select * from perdure.runs'
    const { name, text } = plain.of(sql)
    expect(plain.of(sql)).toEqual({ name, text })
    expect(name).toMatch(/^perdure_[0-9a-f]{24}$/)
    expect(new Statements('other', true).of(sql).name).not.toBe(name)
    expect(plain.of(`${sql} `).name).not.toBe(name)
    expect(new Statements('mine', false).of(sql)).toEqual({ name: undefined, text })
  })
})
