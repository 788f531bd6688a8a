import { defineComponent, h, onBeforeUnmount, onMounted, ref } from 'vue'
import { attributesOf, EVENTS, listenTo, loadWidget } from './load.js'

/** <pow-gate> for Vue 3. Other attributes (`auto`, `theme`, `textIdle`) are passed on. */
export const PowGate = defineComponent({
  name: 'PowGate',
  inheritAttrs: false,
  props: {
    siteKey: { type: String, required: true },
    endpoint: { type: String, required: true },
    nonce: String,
  },
  emits: EVENTS,
  setup({ nonce }, { attrs, emit, expose }) {
    const gate = ref()
    let stop = () => {}
    onMounted(() => {
      stop = listenTo(gate.value, emit)
      loadWidget(gate.value.getAttribute('endpoint'), { nonce })
    })
    onBeforeUnmount(() => stop())
    // Until the widget has loaded, the element has no methods, and nothing to reset.
    const execute = async () => {
      await customElements.whenDefined('pow-gate')
      return gate.value.execute()
    }
    expose({ element: gate, execute, reset: () => gate.value.reset?.() })
    return function render() {
      const { siteKey, endpoint } = this
      return h('pow-gate', { ref: gate, ...attributesOf({ ...attrs, siteKey, endpoint }) })
    }
  },
})
