import { mount } from 'svelte'
import Gate from './element-svelte.svelte'
import { app } from './page.js'

mount(Gate, { target: app })
