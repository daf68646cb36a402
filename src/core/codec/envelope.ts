/**
 * Lowered values as text and back, through seroval's JSON mode: `{"$perdure":1,"value":<seroval's tree>}`.
 *
 * The tree is stored for years, so the texts in test/core/codec/golden.test.ts must be readable for ever: if a new
 * seroval reads them no more, it needs a new number in the envelope, and the old reader beside it.
 */
import { createPlugin, fromCrossJSON, type Plugin, type SerovalNode, toCrossJSON } from 'seroval'
import { raiseBytes } from './bytes.ts'
import { type ErrorHead, type ErrorRegistry, fillError, makeError } from './error.ts'
import { MARK } from './plain.ts'
import { Stored } from './stored.ts'

const VERSION = 1
/** Depth and size are bounded by lower.ts; seroval's own limits would refuse on reading what it has written. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER

interface StoredNode extends Record<string, SerovalNode> {
  readonly kind: SerovalNode
  readonly head: SerovalNode
  readonly body: SerovalNode
}

export function writeEnvelope(lowered: unknown): string {
  const tree = toCrossJSON(lowered, {
    plugins: [storedPlugin(new Map(), new Map())],
    refs: new Map(),
    depthLimit: NO_LIMIT,
  })
  return JSON.stringify({ [MARK]: VERSION, value: tree })
}

/** Throws whatever goes wrong: the caller knows that the text is damaged. */
export function readEnvelope(envelope: object, registry: ErrorRegistry): unknown {
  const version: unknown = Reflect.get(envelope, MARK)
  if (version !== VERSION) throw new TypeError('it was written by another version of perdure')
  const tree: unknown = Reflect.get(envelope, 'value')
  if (!isNode(tree)) throw new TypeError('its envelope holds no value')
  const refs = new Map<number, unknown>()
  return fromCrossJSON(tree, { plugins: [storedPlugin(refs, registry)], refs, depthLimit: NO_LIMIT })
}

function isNode(tree: unknown): tree is SerovalNode {
  return typeof tree === 'object' && tree !== null && typeof Reflect.get(tree, 't') === 'number'
}

function storedPlugin(refs: Map<number, unknown>, registry: ErrorRegistry): Plugin<unknown, StoredNode> {
  return createPlugin<unknown, StoredNode>({
    tag: 'perdure',
    skipPlainObjects: true,
    test: (value) => value instanceof Stored,
    parse: {
      sync: (value, context) => {
        if (!(value instanceof Stored)) throw new TypeError('not a stored value')
        const { kind, head, body } = value
        return { kind: context.parse(kind), head: context.parse(head), body: context.parse(body) }
      },
    },
    serialize: () => {
      throw new TypeError('only JSON is written')
    },
    deserialize: (node, context, { id }) => {
      const kind: unknown = context.deserialize(node.kind)
      const head: unknown = context.deserialize(node.head)
      if (kind !== 'error') return raise(kind, head)
      const errorHead = asErrorHead(head)
      const error = makeError(errorHead, registry)
      // The fields may refer to the error, which seroval registers only when this function returns (and refuses to
      // find registered then).
      refs.set(id, error)
      const body: unknown = context.deserialize(node.body)
      refs.delete(id)
      fillError(error, errorHead.name, part(body, 'enumerable'), part(body, 'hidden'))
      return error
    },
  })
}

function raise(kind: unknown, head: unknown): unknown {
  if (kind === 'bigint' && typeof head === 'string') {
    return head.startsWith('-') ? -BigInt(`0x${head.slice(1)}`) : BigInt(`0x${head}`)
  }
  if (kind === 'url' && typeof head === 'string') return new URL(head)
  if (kind === 'bytes' && Array.isArray(head)) return raiseBytes(head[0], head[1])
  if (kind === 'regexp' && Array.isArray(head)) {
    const [source, flags, lastIndex] = head
    const regExp = new RegExp(String(source), String(flags))
    regExp.lastIndex = Number(lastIndex)
    return regExp
  }
  throw new TypeError('it holds a value of an unknown kind')
}

function asErrorHead(head: unknown): ErrorHead {
  if (!Array.isArray(head) || !Array.isArray(head[0])) throw new TypeError('it holds an error without a class')
  const [classes, name, message, stack] = head
  return {
    classes: classes.map(String),
    name: String(name),
    message: String(message),
    stack: stack === undefined ? stack : String(stack),
  }
}

function part(body: unknown, key: string): object {
  const fields: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, key) : undefined
  return typeof fields === 'object' && fields !== null ? fields : {}
}
