/* The block in the editor: a field for the form's id. Pages get it from PHP. */
;(wp => {
  wp.blocks.registerBlockType('powgate/check', {
    edit: props => {
      var field = wp.element.createElement(wp.components.TextControl, {
        label: 'powgate',
        help: wp.blocks.getBlockType('powgate/check').description,
        value: props.attributes.form,
        onChange: form => {
          props.setAttributes({ form: form })
        },
      })
      return wp.element.createElement('div', wp.blockEditor.useBlockProps(), field)
    },
    save: () => null,
  })
})(window.wp)
